#pragma once

#include <cstdint>
#include <vector>

#include "plan/model/layers.h"

/// Which layers ops and buckets are about. Costs and memory follow from works and values; whoever
/// runs real layers needs to know which ones.
namespace isthmus::plan {

/// What a Compute op runs: units of its chunk, in the order of Block.
struct BlockSpan {
  Block block;
  int first_layer = 0;  // of the module; where the block has no layers, the one behind or in front
  bool recomputed = false;
  bool needs_input_gradient = true;
  bool needs_weight_gradient = true;
  bool active = true;  // false: no backward runs
  /// Forward: the units of autograd its backward runs as, in forward order; each active one has a
  /// context (or checkpoint) of its own among the op's values, in that order. Others: none.
  std::uint32_t first_part = 0;  // index into Role::spans
  std::uint32_t num_parts = 0;
};

/// Parameters that are gathered and whose gradients are reduced together, in the order of Block and
/// layers.
struct Bucket {
  Block block;
  int first_layer = 0;
  std::int64_t parameters = 0;
};

/// What a rank holds of one virtual stage. Units in no bucket are frozen.
struct StageContents {
  Block block;
  int first_layer = 0;
  std::vector<Bucket> buckets;
};

}  // namespace isthmus::plan
