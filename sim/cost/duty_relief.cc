#include "sim/cost/duty_relief.h"

#include <cmath>
#include <string>

#include <fmt/core.h>

#include "base/check.h"
#include "base/error.h"

namespace isthmus::sim {
namespace {

constexpr int kBisections = 50;  // to the last bits of a double

double Share(const profiles::Profile& profile, const std::string& name) {
  const std::string key = "clock.duty_relief." + name;
  const double share = profile.Number(key);
  if (share >= 0 && share <= 1) return share;
  throw base::Error(fmt::format("error: parameter {} of profile {} is {}, needs to be in [0, 1]",
                                key, profile.name(), share));
}

}  // namespace

PowerBalance ReadPowerBalance(const profiles::Profile& profile) {
  return {.enabled = profile.Number("clock.duty_relief.enabled") != 0,
          .static_share = Share(profile, "static_share"),
          .exponent = profile.Number("clock.duty_relief.exponent"),
          .memory_share = Share(profile, "memory_share"),
          .idle_share = Share(profile, "idle_share")};
}

DutyRelief RelieveClock(const Duty& duty, double ratio, const PowerBalance& balance) {
  ISTHMUS_CHECK(ratio > 0 && ratio <= 1 && duty.tensor_s >= 0 && duty.memory_s >= 0 &&
                duty.idle_s >= 0);
  // Energy that is left at clock r, over the limit; falls with r.
  const auto spare = [&](double r) {
    const double tensor =
        balance.static_share + (1 - balance.static_share) * std::pow(r / ratio, balance.exponent);
    return duty.tensor_s * ratio / r * (1 - tensor) + duty.memory_s * (1 - balance.memory_share) +
           duty.idle_s * (1 - balance.idle_share);
  };
  double low = ratio;
  double high = 1;
  if (spare(high) >= 0) {
    low = high;
  } else {
    for (int i = 0; i < kBisections; ++i) {
      const double middle = (low + high) / 2;
      (spare(middle) >= 0 ? low : high) = middle;
    }
  }
  return {.clock_ratio = low,
          .step_time_s = duty.tensor_s * ratio / low + duty.memory_s + duty.idle_s};
}

}  // namespace isthmus::sim
