#pragma once

#include <string>
#include <vector>

#include "profiles/profile.h"
#include "traces/measured_row.h"

namespace isthmus::sim {

/// What is known of a GPU's machine without measuring.
struct GpuFacts {
  std::string name = "single-gpu";
  std::string date;  ///< ISO 8601
  int cores = 1;     ///< of the host
};

/// The profile of a GPU that ranks share, from the rows of its ranks: for the cluster `single-gpu`.
///
/// Kernels as FitHost() has them, tables under `gpu.`. The sustained clock is how much slower a
/// product is behind a minute of the same than at its beginning, when the chip was cool:
///
///     clock.bf16.ratio = min(1, t_burst / t_sustained)
///
/// Messages are Gloo's between the host's processes; the model adds the copies each way. Rows of
/// tables `staged.` are whole calls between tensors of the GPU, held out: what the sum is judged
/// by. The context and the allocator's slack can't be told apart from outside and are assumed.
///
/// Throws base::Error naming the table if rows that a profile needs are missing or not positive.
/// docs/calibrate.md; pinned by tests/unit/sim/gpu_fit_test.cc.
profiles::Profile FitGpu(const std::vector<traces::MeasuredRow>& rows, const GpuFacts& facts);

}  // namespace isthmus::sim
