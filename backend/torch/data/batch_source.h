#pragma once

#include <cstdint>

#include "backend/torch/modules/chunk.h"
#include "base/ids.h"

namespace isthmus::backend {

/// Which data a rank asks for.
struct BatchRequest {
  std::uint16_t module = 0;
  base::Rank rank{0};
  std::int64_t step = 0;        // of the training, from 0
  std::int32_t microbatch = 0;  // -1: the whole window (colocated encoders)
};

/// Gives ranks their part of the samples of a step. A sample is a function of (seed, number) only;
/// which numbers a rank holds, sample_order.h says.
///
/// Asked once per chunk with a stem or a head and microbatch. Tensors are on the CPU: `patches` in
/// the precision of the module, this rank's part over cp but not cut over tp; token ids int64 and
/// loss_mask bool, whole sequences (chunks cut them over cp and tp). Ranks without stem and head
/// don't ask. Belongs to one rank's thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual BlockData Get(const BatchRequest& request) = 0;
};

}  // namespace isthmus::backend
