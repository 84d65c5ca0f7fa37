#pragma once

#include <string>

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "reports/analysis.h"
#include "reports/figures.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "topology/cluster_spec.h"

namespace isthmus::studies {

struct Prediction {
  reports::Figures figures;
  double step_time_s = 0;              ///< what the scenario's `step.metric` asks for
  double forward_backward_time_s = 0;  ///< see reports::ForwardBackward
};

/// What a prediction leaves out about traffic, by the network model.
std::string NetworkAssumption(const topology::ClusterSpec& cluster, sim::Network network);

/// A scenario's program, to be simulated as often as one likes on other machines: building it
/// costs as much as simulating it.
///
/// Ranks that do the same are folded. Simulations with flows take turns: only one may run at a time
/// in a process. Where the scenario's profile asks for it, the clock follows the step's power
/// balance, found by simulating a few times. Thread-safe: const only. Lifetime: the scenario must
/// outlive it.
class StepSimulation {
 public:
  explicit StepSimulation(const scenarios::Scenario& scenario,
                          sim::Network network = sim::Network::kNccl);

  /// With all figures; `commit` is stated in them.
  ///
  /// Throws base::Error when the profile lacks a parameter or the program deadlocks.
  Prediction Predict(const std::string& commit) const;

  /// The same with the whole critical path (Figures::path); pieces that move bytes have their links
  /// (internal/bottleneck_links.h).
  Prediction PredictWithPath(const std::string& commit) const;

  /// The step's time alone (by the scenario's metric), with another profile and cluster.
  double StepTime(const profiles::Profile& profile, const topology::ClusterSpec& cluster) const;

  const scenarios::Scenario& scenario() const { return scenario_; }
  const plan::Program& program() const { return program_; }
  /// The scenario's, its clock raised to the step's power balance where it asks for that.
  const profiles::Profile& profile() const { return profile_; }

 private:
  Prediction PredictInto(reports::Analysis& analysis, const std::string& commit) const;

  const scenarios::Scenario& scenario_;
  sim::Network network_;
  plan::Program program_;
  profiles::Profile profile_;
};

/// Stated among the assumptions of a run whose profile follows the power balance.
inline constexpr const char* kClockIsRelieved =
    "profile: clock raised to the step's power balance (clock.duty_relief)";

/// Builds the scenario's program and simulates one step.
Prediction Predict(const scenarios::Scenario& scenario, const std::string& commit);

}  // namespace isthmus::studies
