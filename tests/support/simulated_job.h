#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "sim/cost/kernel_model.h"
#include "sim/cost/nccl_model.h"
#include "sim/engine/engine.h"
#include "sim/engine/job_mix.h"
#include "sim/engine/lower.h"
#include "sim/network/link_account.h"
#include "topology/cluster.h"

namespace isthmus::tests {

/// What a run is judged by.
struct SimulatedJob {
  sim::Lowered lowered;
  sim::EngineResult result;
  std::uint64_t num_flows = 0;
  std::uint64_t num_shared_flows = 0;
};

/// A job of a mix: a program on the devices that its cluster, the same but for that, gives its
/// ranks.
struct PlacedProgram {
  const plan::Program& program;
  const topology::Cluster& cluster;
  std::int64_t start_ps = 0;
};

/// What a mix is judged by.
struct SimulatedMix {
  SimulatedJob first;
  std::vector<sim::RepeatedRuns> others;
  std::vector<sim::LinkTraffic> links;
};

/// Runs programs on H100s, with the shipped profile.
class SimulatedJobs {
 public:
  SimulatedJobs();

  /// With the jitter of the cluster, where it has any: then not folded.
  SimulatedJob Simulate(const plan::Program& program, const topology::Cluster& cluster, bool fold,
                        bool expanded) const;
  /// With a flow network over such a solver.
  SimulatedJob SimulateFlows(const plan::Program& program, const topology::Cluster& cluster,
                             bool fold, sim::FlowNetwork::MakeSolver make_solver) const;
  /// The first beside the others.
  SimulatedMix SimulateMix(const std::vector<PlacedProgram>& programs,
                           sim::FlowNetwork::MakeSolver make_solver) const;

 private:
  sim::CostModels costs() const { return {.segments = &segments_, .collectives = &collectives_}; }

  profiles::Profile profile_;
  sim::KernelModel kernels_;
  sim::NcclModel collectives_;
  sim::SegmentModel segments_;
};

/// Empty if every rank of `other` ran each op when it did in `unfolded`; else the first difference.
std::string Difference(const SimulatedJob& unfolded, const SimulatedJob& other);

}  // namespace isthmus::tests
