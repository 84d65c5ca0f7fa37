#include "sim/cost/clock.h"

#include <fmt/core.h>

#include "base/error.h"

namespace isthmus::sim {
namespace {

std::optional<double> RatioOf(const profiles::Profile& profile, const std::string& key) {
  if (!profile.has(key)) return std::nullopt;
  const double ratio = profile.Number(key);
  if (!(ratio > 0 && ratio <= 1)) {
    throw base::Error(fmt::format("error: parameter {} of profile {} is {}, needs to be in (0, 1]",
                                  key, profile.name(), ratio));
  }
  return ratio;
}

}  // namespace

SustainedClock::SustainedClock(const profiles::Profile& profile)
    : bf16_(RatioOf(profile, "clock.bf16.ratio")),
      fp8_(RatioOf(profile, "clock.fp8.ratio")),
      profile_name_(profile.name()) {}

double SustainedClock::Ratio(plan::DType dtype) const {
  const std::optional<double>& ratio = dtype == plan::DType::kFp8 ? fp8_ : bf16_;
  if (!ratio) {
    throw base::Error(fmt::format("error: profile {} has no parameter clock.{}.ratio",
                                  profile_name_, dtype == plan::DType::kFp8 ? "fp8" : "bf16"));
  }
  return *ratio;
}

double SustainedClock::Ratio(const plan::Gemm& gemm) const {
  return Ratio(gemm.in_fp8_run ? plan::DType::kFp8 : gemm.dtype);
}

double SustainedClock::Ratio(const plan::Attention& attention) const {
  return Ratio(attention.in_fp8_run ? plan::DType::kFp8 : plan::DType::kBf16);
}

}  // namespace isthmus::sim
