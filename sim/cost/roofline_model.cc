#include "sim/cost/roofline_model.h"

#include <algorithm>
#include <string>
#include <variant>

namespace isthmus::sim {
namespace {

std::optional<base::FlopsPerSecond> PeakRate(const profiles::Profile& profile,
                                             const std::string& key) {
  if (!profile.has(key)) return std::nullopt;
  return profile.Rate(key);
}

}  // namespace

RooflineModel::RooflineModel(const profiles::Profile& profile)
    : bf16_(PeakRate(profile, "device.peak_rate.bf16")),
      fp8_(PeakRate(profile, "device.peak_rate.fp8")),
      memory_bandwidth_(profile.Bandwidth("device.memory_bandwidth")) {}

base::Seconds RooflineModel::FlopTime(base::Flops flops, plan::DType dtype) const {
  std::optional<base::FlopsPerSecond> rate;
  if (dtype == plan::DType::kFp8) rate = fp8_;
  if (dtype == plan::DType::kBf16 || dtype == plan::DType::kFp16) rate = bf16_;
  return rate ? flops / *rate : base::Seconds(0);
}

base::Seconds RooflineModel::Time(const plan::Kernel& kernel) const {
  if (const auto* gemm = std::get_if<plan::Gemm>(&kernel)) {
    if (NumLaunches(kernel) == 0) return base::Seconds(0);
    return std::max(FlopTime(plan::FlopsOf(*gemm), gemm->dtype),
                    gemm->output_bytes / memory_bandwidth_);
  }
  if (const auto* attention = std::get_if<plan::Attention>(&kernel)) {
    return FlopTime(plan::FlopsOf(*attention), plan::DType::kBf16);
  }
  return std::get<plan::MemoryBound>(kernel).bytes / memory_bandwidth_;
}

base::Seconds RooflineModel::LaunchGap(const plan::Kernel& /*kernel*/) const {
  return base::Seconds(0);
}

}  // namespace isthmus::sim
