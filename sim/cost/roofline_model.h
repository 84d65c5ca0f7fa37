#pragma once

#include <optional>

#include "profiles/profile.h"
#include "sim/cost/compute_model.h"

namespace isthmus::sim {

/// The least time the data sheet allows: FLOP at peak rate, or bytes that must
/// move at peak memory rate, whichever is longer; no launches, no waves, no
/// clock.
///
///     t = max(FLOP / peak, bytes / HBM)
///
/// A matrix product moves its output only (operands may lie in the cache);
/// attention moves nothing and, since half of a causal mask may be skipped,
/// counts its halved FLOP. Source: `device.peak_rate.<dtype>`,
/// `device.memory_bandwidth`. A data type without a peak rate is not bounded.
/// Use: the bound that KernelModel is held to, and the question what perfect
/// kernels would gain.
class RooflineModel : public ComputeModel {
 public:
  explicit RooflineModel(const profiles::Profile& profile);

  base::Seconds Time(const plan::Kernel& kernel) const override;
  base::Seconds LaunchGap(const plan::Kernel& kernel) const override;

 private:
  base::Seconds FlopTime(base::Flops flops, plan::DType dtype) const;

  std::optional<base::FlopsPerSecond> bf16_;
  std::optional<base::FlopsPerSecond> fp8_;
  base::BytesPerSecond memory_bandwidth_;
};

}  // namespace isthmus::sim
