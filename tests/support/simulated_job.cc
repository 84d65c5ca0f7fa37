#include "tests/support/simulated_job.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plan/program/print.h"
#include "scenarios/scenario.h"
#include "sim/cost/jitter_model.h"
#include "sim/engine/job_mix.h"
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
  const std::optional<sim::JitterModel> jitter = JitterOf(cluster);
  if (jitter) options.jitter = &*jitter;
  run.result = sim::JobMix(network, {{&run.lowered, options, nullptr}}).Run();
  run.num_flows = network.num_flows();
  run.num_shared_flows = network.num_shared_flows();
  return run;
}

SimulatedMix SimulatedJobs::SimulateMix(const std::vector<PlacedProgram>& programs,
                                        sim::FlowNetwork::MakeSolver make_solver) const {
  SimulatedMix mix;
  sim::TrafficMap map(programs.front().cluster);
  std::vector<sim::Lowered> lowered;
  for (const PlacedProgram& job : programs)
    lowered.push_back(sim::LowerOnto(map, job.program, job.cluster, costs()));
  const sim::Traffic traffic = std::move(map).Settled();
  sim::FlowNetwork network(traffic, std::move(make_solver));
  std::vector<sim::MixedJob> jobs;
  for (std::size_t job = 0; job < programs.size(); ++job) {
    sim::EngineOptions options = Options();
    options.start_ps = programs[job].start_ps;
    jobs.push_back({&lowered[job], options, nullptr});
  }
  sim::JobMix run(network, std::move(jobs));
  mix.first.result = run.Run();
  mix.others = run.others();
  mix.first.num_flows = network.num_flows();
  mix.first.num_shared_flows = network.num_shared_flows();
  for (std::size_t link = 0; link < traffic.links.size(); ++link)
    mix.links.push_back({traffic.links[link].link, network.accounts()[link]});
  mix.first.lowered = std::move(lowered.front());
  return mix;
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
