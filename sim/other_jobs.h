#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "plan/program/program.h"
#include "sim/cost/jitter_model.h"
#include "sim/cost/machine_models.h"
#include "sim/engine/job_mix.h"
#include "sim/engine/lower.h"
#include "sim/network/traffic_map.h"
#include "sim/simulate.h"
#include "topology/cluster.h"

namespace isthmus::sim {

/// The jobs beside the one that is simulated, made ready to run.
///
/// Each is simulated alone first, folded, on a network of its own: what it loses beside others is
/// measured by that. Lifetime: the options and what they name must outlive it.
class OtherJobs {
 public:
  /// `program` is the simulated one, on the devices that `cluster` gives its ranks. Throws
  /// base::Error where two jobs are on one device, or a job's profile has no kernels.
  OtherJobs(const SimOptions& options, const plan::Program& program,
            const topology::Cluster& cluster);

  bool empty() const { return jobs_.empty(); }

  /// Lowers `program` and all other jobs onto one network, whose traffic goes to `shared`.
  Lowered LowerBeside(const plan::Program& program, const topology::Cluster& cluster,
                      const CostModels& costs, Traffic& shared);

  /// After LowerBeside().
  std::vector<MixedJob> Mixed() const;
  std::vector<OtherJobOutcome> Outcomes(const std::vector<RepeatedRuns>& runs) const;

 private:
  struct Job {
    const OtherJob& what;
    topology::Cluster cluster;  // the same, with this job's ranks on it
    MachineModels models;
    std::optional<JitterModel> jitter;
    double alone_step_s = 0;
    Lowered lowered = {};
  };

  const SimOptions& options_;
  std::deque<Job> jobs_;  // stay where they are
};

}  // namespace isthmus::sim
