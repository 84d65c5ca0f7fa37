#pragma once

#include <string>

#include "profiles/profile.h"
#include "sim/cost/attention_model.h"
#include "sim/cost/clock.h"
#include "sim/cost/compute_model.h"
#include "sim/cost/gemm_model.h"
#include "sim/cost/memory_model.h"
#include "sim/cost/roofline_model.h"

namespace isthmus::sim {

/// Kernels as measured: GemmModel, AttentionModel, MemoryModel at the sustained
/// clock, and a gap of `host.launch_gap` for each launch.
///
/// Always on: no kernel is faster than the data sheet allows; a profile that
/// says so is refused with base::Error at the kernel in question.
class KernelModel : public ComputeModel {
 public:
  explicit KernelModel(const profiles::Profile& profile);

  base::Seconds Time(const plan::Kernel& kernel) const override;
  base::Seconds LaunchGap(const plan::Kernel& kernel) const override;

 private:
  std::string profile_name_;
  SustainedClock clock_;
  GemmModel gemm_;
  AttentionModel attention_;
  MemoryModel memory_;
  RooflineModel roofline_;
  base::Seconds launch_gap_;
};

}  // namespace isthmus::sim
