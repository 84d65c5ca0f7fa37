#include "sim/other_jobs.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sim_time.h"
#include "sim/engine_setup.h"
#include "traces/tee_sink.h"

namespace isthmus::sim {
namespace {

double StepSeconds(std::int64_t length_ps, std::int64_t num_steps) {
  return base::ToSeconds(base::Picoseconds(length_ps)).value() / static_cast<double>(num_steps);
}

double StepAlone(const OtherJob& job, const topology::Cluster& cluster, const SimOptions& beside) {
  const SimOptions options{
      .expansion = beside.expansion, .network = Network::kFlow, .record_memory_counters = false};
  traces::TeeSink nobody({});
  const Outcome outcome = Simulate(*job.program, cluster, *job.profile, options, {}, nobody);
  if (outcome.deadlock)
    throw base::Error(fmt::format("other job {}: {}", job.name, outcome.explanation));
  return StepSeconds(outcome.end_ps, job.program->num_steps);
}

void CheckDevices(const std::string& name, const topology::Cluster& cluster, int num_ranks,
                  std::map<base::DeviceId, std::string>& taken) {
  for (base::Rank rank{0}; rank.value() < num_ranks; ++rank) {
    const auto [at, is_free] = taken.emplace(cluster.DeviceOf(rank), name);
    if (is_free) continue;
    throw base::Error(fmt::format("{} and {} are both on GPU {} of cluster {}", at->second, name,
                                  at->first.value(), cluster.spec().name));
  }
}

}  // namespace

OtherJobs::OtherJobs(const SimOptions& options, const plan::Program& program,
                     const topology::Cluster& cluster)
    : options_(options) {
  if (options.other_jobs.empty()) return;
  std::map<base::DeviceId, std::string> taken;
  CheckDevices("the simulated job", cluster, program.num_ranks, taken);
  for (const OtherJob& job : options.other_jobs) {
    if (!HasKernels(*job.profile)) {
      throw base::Error(
          fmt::format("other job {}: profile {} has no kernels, so nobody knows when it sends what",
                      job.name, job.profile->name()));
    }
    topology::ClusterSpec spec = cluster.spec();
    spec.rank_devices = job.rank_devices;
    // Draws of its own; those of the simulated job stay what they are alone.
    if (spec.jitter) spec.jitter->seed += jobs_.size() + 1;
    topology::Cluster own(std::move(spec));
    CheckDevices("job " + job.name, own, job.program->num_ranks, taken);
    MachineModels models = MakeModels(own.spec(), *job.profile);
    const double alone_step_s = StepAlone(job, own, options);
    std::optional<JitterModel> jitter;
    if (own.spec().jitter) jitter.emplace(*own.spec().jitter);
    jobs_.push_back({job, std::move(own), std::move(models), jitter, alone_step_s});
  }
}

Lowered OtherJobs::LowerBeside(const plan::Program& program, const topology::Cluster& cluster,
                               const CostModels& costs, Traffic& shared) {
  TrafficMap map(cluster);
  Lowered lowered = LowerOnto(map, program, cluster, costs);
  for (Job& job : jobs_) {
    job.lowered =
        LowerOnto(map, *job.what.program, job.cluster, CostsOf(job.models, *job.what.profile));
  }
  shared = std::move(map).Settled();
  return lowered;
}

std::vector<MixedJob> OtherJobs::Mixed() const {
  std::vector<MixedJob> mixed;
  for (const Job& job : jobs_) {
    MixedJob& one = mixed.emplace_back();
    one.lowered = &job.lowered;
    one.options = OptionsOf(job.models, *job.what.profile, options_, job.lowered);
    if (job.jitter) one.options.jitter = &*job.jitter;
    one.options.start_ps = base::ToPicoseconds(job.what.start_after).value();
  }
  return mixed;
}

std::vector<OtherJobOutcome> OtherJobs::Outcomes(const std::vector<RepeatedRuns>& runs) const {
  std::vector<OtherJobOutcome> outcomes;
  for (std::size_t index = 0; index < jobs_.size(); ++index) {
    OtherJobOutcome& outcome = outcomes.emplace_back();
    outcome.num_steps = runs[index].num_runs * jobs_[index].what.program->num_steps;
    if (outcome.num_steps > 0)
      outcome.step_s = StepSeconds(runs[index].length_ps, outcome.num_steps);
    outcome.alone_step_s = jobs_[index].alone_step_s;
  }
  return outcomes;
}

}  // namespace isthmus::sim
