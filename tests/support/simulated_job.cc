#include "tests/support/simulated_job.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plan/program/print.h"
#include "scenarios/scenario.h"
#include "sim/cost/jitter_model.h"
#include "sim/engine/program_traffic.h"

namespace isthmus::tests {
namespace {

sim::EngineOptions Options() { return {.straggler_share = 0.0131, .step_overhead_ps = 12'345'678}; }

std::optional<sim::JitterModel> JitterOf(const topology::Cluster& cluster) {
  if (!cluster.spec().jitter) return std::nullopt;
  return sim::JitterModel(*cluster.spec().jitter);
}

}  // namespace

SimulatedJobs::SimulatedJobs()
    : profile_(scenarios::LoadProfile("h100-sxm")),
      kernels_(profile_),
      collectives_(profile_),
      segments_(profile_, kernels_, collectives_) {}

SimulatedJob SimulatedJobs::Simulate(const plan::Program& program, const topology::Cluster& cluster,
                                     bool fold, bool expanded) const {
  SimulatedJob run;
  run.lowered = sim::Lower(program, cluster, costs(), fold);
  sim::EngineOptions options = Options();
  options.expanded = expanded;
  const std::optional<sim::JitterModel> jitter = JitterOf(cluster);
  if (jitter) options.jitter = &*jitter;
  run.result = sim::Engine(run.lowered, options, nullptr).Run();
  return run;
}

SimulatedJob SimulatedJobs::SimulateFlows(const plan::Program& program,
                                          const topology::Cluster& cluster, bool fold,
                                          sim::FlowNetwork::MakeSolver make_solver) const {
  SimulatedJob run;
  run.lowered = sim::Lower(program, cluster, costs(), fold, true);
  sim::FlowNetwork network(run.lowered.traffic->traffic(), std::move(make_solver));
  sim::EngineOptions options = Options();
  options.network = &network;
  const std::optional<sim::JitterModel> jitter = JitterOf(cluster);
  if (jitter) options.jitter = &*jitter;
  run.result = sim::Engine(run.lowered, options, nullptr).Run();
  run.num_flows = network.num_flows();
  run.num_shared_flows = network.num_shared_flows();
  return run;
}

std::string Difference(const SimulatedJob& unfolded, const SimulatedJob& other) {
  if (unfolded.result.deadlock || other.result.deadlock) return "deadlock";
  for (std::size_t rank = 0; rank < unfolded.lowered.class_of_rank.size(); ++rank) {
    const sim::ClassTimes& a = unfolded.result.times[unfolded.lowered.class_of_rank[rank]];
    const sim::ClassTimes& b = other.result.times[other.lowered.class_of_rank[rank]];
    if (a.start_ps.size() != b.start_ps.size()) return fmt::format("rank {} has other ops", rank);
    for (std::size_t op = 0; op < a.start_ps.size(); ++op) {
      if (a.start_ps[op] == b.start_ps[op] && a.end_ps[op] == b.end_ps[op]) continue;
      const plan::Role& role = unfolded.lowered.role(unfolded.lowered.class_of_rank[rank]);
      return fmt::format("rank {} op {} ({}): {} to {}, not {} to {}", rank, op,
                         plan::Describe(*unfolded.lowered.program, role, role.ops[op]),
                         a.start_ps[op], a.end_ps[op], b.start_ps[op], b.end_ps[op]);
    }
    if (a.transfer_end_ps != b.transfer_end_ps) return fmt::format("messages of rank {}", rank);
  }
  if (unfolded.result.end_ps != other.result.end_ps) return "ends differ";
  if (unfolded.result.step_end_ps != other.result.step_end_ps) return "steps end differently";
  return "";
}

}  // namespace isthmus::tests
