#include "sim/cost/memory_model.h"

#include <string>

#include <fmt/core.h>

#include "base/check.h"
#include "base/error.h"

namespace isthmus::sim {

MemoryModel::MemoryModel(const profiles::Profile& profile)
    : latency_(profile.Time("memory.latency")),
      optimizer_latency_(profile.Time("step.optimizer_latency")) {
  const base::BytesPerSecond peak = profile.Bandwidth("device.memory_bandwidth");
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    const std::string key =
        fmt::format("memory.{}.efficiency", plan::ToText(static_cast<plan::MemoryClass>(i)));
    const double efficiency = profile.Number(key);
    if (!(efficiency > 0 && efficiency <= 1)) {
      throw base::Error(
          fmt::format("error: parameter {} of profile {} is {}, needs to be in (0, 1]", key,
                      profile.name(), efficiency));
    }
    rates_[i] = peak * efficiency;
  }
}

base::Seconds MemoryModel::Time(const plan::MemoryBound& kernel) const {
  ISTHMUS_CHECK(kernel.bytes >= base::Bytes(0) && kernel.launches >= 0);
  if (kernel.bytes == base::Bytes(0)) return base::Seconds(0);
  const bool is_step = kernel.memory_class == plan::MemoryClass::kOptimizer;
  return (is_step ? optimizer_latency_ : base::Seconds(0)) + latency_ * kernel.launches +
         kernel.bytes / rates_[static_cast<std::size_t>(kernel.memory_class)];
}

}  // namespace isthmus::sim
