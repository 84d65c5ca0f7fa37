#include "studies/band.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "studies/kernel_times.h"

namespace isthmus::studies {
namespace {

using profiles::Profile;

constexpr double kClockHalfWidth = 0.03;
constexpr double kNicHalfWidth = 0.2;
constexpr double kMedianTo80Percent = 1.2816 / 0.6745;

// The profile with `change` applied to the values of some keys.
template <typename Change>
Profile Changed(const Profile& profile, const std::vector<std::string>& keys,
                const Change& change) {
  profiles::ProfileBuilder builder(profile.name());
  for (const std::string& key : keys) {
    profiles::Parameter parameter = profile.Get(key);
    parameter.value = change(parameter.value);
    parameter.strict.reset();
    builder.Set(key, std::move(parameter));
  }
  return profiles::MergeProfiles(profile.name(), {profile, std::move(builder).Build()});
}

std::vector<std::string> ClockKeys(const Profile& profile) {
  std::vector<std::string> keys;
  for (const char* key : {"clock.bf16.ratio", "clock.fp8.ratio"}) {
    if (profile.has(key)) keys.emplace_back(key);
  }
  return keys;
}

topology::ClusterSpec WithNics(topology::ClusterSpec cluster, double factor) {
  for (topology::NodeGroup& group : cluster.node_groups) {
    group.nic_bandwidth.value = group.nic_bandwidth.value * factor;
  }
  return cluster;
}

// From step times on both sides of an input.
BandPart PartOf(std::string what, double step_time_s, double a_s, double b_s) {
  const double a = a_s / step_time_s - 1;
  const double b = b_s / step_time_s - 1;
  return {std::move(what), std::min({a, b, 0.0}), std::max({a, b, 0.0})};
}

BandPart ClockPart(const StepSimulation& simulation, double step_time_s) {
  const scenarios::Scenario& scenario = simulation.scenario();
  const std::vector<std::string> keys = ClockKeys(simulation.profile());
  const auto at = [&](double change) {
    const Profile profile = Changed(simulation.profile(), keys, [&](double ratio) {
      return std::clamp(ratio + change, kClockHalfWidth, 1.0);
    });
    return simulation.StepTime(profile, scenario.cluster);
  };
  return PartOf("sustained clock", step_time_s, at(-kClockHalfWidth), at(kClockHalfWidth));
}

BandPart NicPart(const StepSimulation& simulation, double step_time_s) {
  const scenarios::Scenario& scenario = simulation.scenario();
  const auto at = [&](double factor) {
    return simulation.StepTime(simulation.profile(), WithNics(scenario.cluster, factor));
  };
  return PartOf("NIC bandwidth", step_time_s, at(1 - kNicHalfWidth), at(1 + kNicHalfWidth));
}

void AddKernelParts(const StepSimulation& simulation, double step_time_s, StepBand& band) {
  const Profile& profile = simulation.profile();
  std::map<std::string, double> squares;  // by kind, sum of squared shares
  for (const KernelTime& time : KernelTimes(simulation.program(), profile)) {
    const double share = time.seconds / step_time_s;
    squares[time.residual] += share * share;
  }
  for (const auto& [key, sum] : squares) {
    if (!profile.has(key) || !profile.Get(key).residual) continue;
    const double width = kMedianTo80Percent * profile.Get(key).residual->median * std::sqrt(sum);
    band.parts.push_back({key, -width, width});
  }
}

}  // namespace

StepBand EstimateBand(const StepSimulation& simulation, double step_time_s) {
  StepBand band;
  if (!ClockKeys(simulation.profile()).empty()) {
    band.parts.push_back(ClockPart(simulation, step_time_s));
  }
  band.parts.push_back(NicPart(simulation, step_time_s));
  AddKernelParts(simulation, step_time_s, band);
  double low = 0;
  double high = 0;
  for (const BandPart& part : band.parts) {
    low += part.low * part.low;
    high += part.high * part.high;
  }
  band.low_step_time_s = step_time_s * (1 - std::sqrt(low));
  band.high_step_time_s = step_time_s * (1 + std::sqrt(high));
  return band;
}

void Widen(const std::vector<double>& step_times_s, double scored_s, StepBand& band) {
  const double low = band.low_step_time_s / scored_s;
  const double high = band.high_step_time_s / scored_s;
  for (const double time : step_times_s) {
    band.low_step_time_s = std::min(band.low_step_time_s, time * low);
    band.high_step_time_s = std::max(band.high_step_time_s, time * high);
  }
}

}  // namespace isthmus::studies
