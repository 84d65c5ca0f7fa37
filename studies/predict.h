#pragma once

#include <string>
#include <vector>

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
/// balance, found by simulating a few times. Other jobs of the scenario run beside it, each at a
/// clock as it has it alone. Thread-safe: const only. Lifetime: the scenario must
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
  /// (internal/bottleneck_links.h, internal/contended_links.h). With flows nothing is folded then,
  /// since a folded link stands for many.
  Prediction PredictWithPath(const std::string& commit) const;

  /// Those beside it, for sim::SimOptions; they refer to this.
  std::vector<sim::OtherJob> OtherJobs() const;

  /// The step's time alone (by the scenario's metric), with another profile and cluster.
  double StepTime(const profiles::Profile& profile, const topology::ClusterSpec& cluster) const;

  const scenarios::Scenario& scenario() const { return scenario_; }
  const plan::Program& program() const { return program_; }
  /// The scenario's, its clock raised to the step's power balance where it asks for that.
  const profiles::Profile& profile() const { return profile_; }

 private:
  struct Simulated {
    Prediction prediction;
    sim::Outcome outcome;
  };
  Simulated PredictInto(reports::Analysis& analysis, const std::string& commit,
                        bool record_links) const;
  // Of the whole step.
  double FullStepTime(const profiles::Profile& profile, const topology::ClusterSpec& cluster) const;
  sim::Outcome Run(const profiles::Profile& profile, const topology::ClusterSpec& cluster,
                   const sim::RunFacts& facts, bool record_links, traces::TraceSink& sink) const;

  const scenarios::Scenario& scenario_;
  sim::Network network_;
  plan::Program program_;
  std::vector<StepSimulation> others_;  // as the scenario has them
  profiles::Profile profile_;
};

/// How the scenario's other jobs fared.
std::vector<reports::OtherJobFigure> OtherJobFigures(const scenarios::Scenario& scenario,
                                                     const sim::Outcome& outcome);

/// Stated among the assumptions of a run whose profile follows the power balance.
inline constexpr const char* kClockIsRelieved =
    "profile: clock raised to the step's power balance (clock.duty_relief)";

/// Builds the scenario's program and simulates one step.
Prediction Predict(const scenarios::Scenario& scenario, const std::string& commit);

}  // namespace isthmus::studies
