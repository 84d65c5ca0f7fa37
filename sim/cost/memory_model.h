#pragma once

#include <array>

#include "base/units.h"
#include "plan/model/kernel.h"
#include "profiles/profile.h"

namespace isthmus::sim {

/// Time of kernels that the memory bounds.
///
///     t = launches · t0 + bytes / (eta · HBM), an optimizer step + t_opt
///
/// t0: `memory.latency` (s); t_opt: `step.optimizer_latency` (s), what a step of multi-tensor
/// kernels costs besides; eta: share of the data sheet's rate `device.memory_bandwidth` that the
/// class reaches, `memory.<class>.efficiency`, fitted by scripts/fit/fit_kernels.py to rows longer
/// than 60 us. Never throttled. Validity: fused kernels; eager ones reach half. Shorter kernels
/// whose data stays in the L2 cache are up to twice as fast. Pinned by
/// tests/unit/sim/memory_model_test.cc; docs/models/memory_bound.md.
class MemoryModel {
 public:
  explicit MemoryModel(const profiles::Profile& profile);

  /// 0 for no bytes.
  base::Seconds Time(const plan::MemoryBound& kernel) const;

 private:
  base::Seconds latency_;
  base::Seconds optimizer_latency_;
  std::array<base::BytesPerSecond, plan::kNumMemoryClasses> rates_;  // by MemoryClass
};

}  // namespace isthmus::sim
