#include "studies/predict.h"

#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "reports/forward_backward.h"
#include "studies/duty_relief.h"
#include "studies/internal/bottleneck_links.h"
#include "studies/internal/contended_links.h"
#include "studies/link_figures.h"
#include "topology/cluster.h"
#include "traces/tee_sink.h"

namespace isthmus::studies {
namespace {

constexpr double kPicosecond = 1e-12;

// What a step took, of a run that nobody wants figures of.
class StepClock final : public traces::TraceSink {
 public:
  void OnHeader(const traces::Header&) override {}
  void OnEvents(std::span<const traces::Event>) override {}
  void OnMemory(std::span<const traces::MemoryCounter>) override {}
  void OnTrailer(const traces::Trailer& trailer) override {
    const std::vector<std::int64_t>& ends = trailer.step_end_ps;
    // As reports::Figures: of several steps the mean period after the first.
    period_ps_ = ends.size() < 2 ? static_cast<double>(trailer.end_ps)
                                 : static_cast<double>(ends.back() - ends.front()) /
                                       static_cast<double>(ends.size() - 1);
  }
  double seconds() const { return period_ps_ * kPicosecond; }

 private:
  double period_ps_ = 0;
};

sim::RunFacts FactsOf(const scenarios::Scenario& scenario, const std::string& commit) {
  sim::RunFacts facts{.scenario_name = scenario.name,
                      .scenario_hash = base::HashText(scenario.hash),
                      .commit = commit,
                      .seed = scenario.seed,
                      .assumptions = scenario.assumptions};
  if (FollowsPowerBalance(scenario.profile)) facts.assumptions.emplace_back(kClockIsRelieved);
  return facts;
}

double Seconds(const reports::ForwardBackward& forward_backward) {
  return static_cast<double>(forward_backward.duration_ps().value_or(0)) * kPicosecond;
}

}  // namespace

std::string NetworkAssumption(const topology::ClusterSpec& cluster, sim::Network network) {
  if (cluster.ranks_share != topology::RanksShare::kNothing) {
    return "ranks share one device: every message and collective takes as long as beside such of "
           "all other ranks; nothing else runs on the machine";
  }
  if (network == sim::Network::kFlow) {
    return "network flow: messages, collectives and copies share links, max-min fair, and take "
           "what their closed form says where they are alone; collectives inside blocks have their "
           "NVLinks to themselves";
  }
  return "network nccl: closed forms on an idle network; link latencies, wiring, leaf and spine of "
         "the cluster don't enter, nor that several groups of a node share its NICs";
}

StepSimulation::StepSimulation(const scenarios::Scenario& scenario, sim::Network network)
    : scenario_(scenario),
      network_(network),
      program_(plan::Build(scenario.job)),
      profile_(scenario.profile) {
  for (const scenarios::OtherJob& job : scenario.other_jobs)
    others_.emplace_back(job.scenario, network);
  if (!FollowsPowerBalance(scenario.profile)) return;
  profile_ = RelievedProfile(program_, scenario.profile, [&](const profiles::Profile& profile) {
    return FullStepTime(profile, scenario.cluster);
  });
}

std::vector<sim::OtherJob> StepSimulation::OtherJobs() const {
  std::vector<sim::OtherJob> jobs;
  for (std::size_t index = 0; index < others_.size(); ++index) {
    const scenarios::OtherJob& job = scenario_.other_jobs[index];
    jobs.push_back({job.name, &others_[index].program_, &others_[index].profile_,
                    job.scenario.cluster.rank_devices, job.start_after});
  }
  return jobs;
}

sim::Outcome StepSimulation::Run(const profiles::Profile& profile,
                                 const topology::ClusterSpec& cluster, const sim::RunFacts& facts,
                                 bool record_links, traces::TraceSink& sink) const {
  const sim::SimOptions options{.network = network_,
                                .record_memory_counters = false,
                                .record_links = record_links,
                                .allocator = scenario_.job.allocator,
                                .other_jobs = OtherJobs()};
  sim::Outcome outcome =
      sim::Simulate(program_, topology::Cluster(cluster), profile, options, facts, sink);
  if (outcome.deadlock) throw base::Error(outcome.explanation);
  return outcome;
}

double StepSimulation::FullStepTime(const profiles::Profile& profile,
                                    const topology::ClusterSpec& cluster) const {
  StepClock clock;
  Run(profile, cluster, FactsOf(scenario_, {}), false, clock);
  return clock.seconds();
}

StepSimulation::Simulated StepSimulation::PredictInto(reports::Analysis& analysis,
                                                      const std::string& commit,
                                                      bool record_links) const {
  reports::ForwardBackward forward_backward;
  traces::TeeSink sink({&analysis, &forward_backward});
  sim::Outcome outcome =
      Run(profile_, scenario_.cluster, FactsOf(scenario_, commit), record_links, sink);

  Prediction prediction{.figures = analysis.figures()};
  prediction.figures.other_jobs = OtherJobFigures(scenario_, outcome);
  prediction.forward_backward_time_s = Seconds(forward_backward);
  prediction.step_time_s = scenario_.metric == scenarios::StepMetric::kForwardBackward
                               ? prediction.forward_backward_time_s
                               : prediction.figures.step_time_s;
  return {std::move(prediction), std::move(outcome)};
}

Prediction StepSimulation::Predict(const std::string& commit) const {
  reports::Analysis analysis;
  return PredictInto(analysis, commit, false).prediction;
}

Prediction StepSimulation::PredictWithPath(const std::string& commit) const {
  reports::Analysis analysis(reports::Analysis::Path::kWhole);
  const bool has_flows = network_ == sim::Network::kFlow;
  auto [prediction, outcome] = PredictInto(analysis, commit, has_flows);
  reports::Figures& figures = prediction.figures;
  figures.assumptions.push_back(NetworkAssumption(scenario_.cluster, network_));
  const topology::Cluster cluster(scenario_.cluster);
  internal::NameBottleneckLinks(program_, cluster, figures.path);
  if (has_flows) internal::NameContendedLinks(program_, cluster, outcome, figures.path);
  if (!scenario_.other_jobs.empty()) {
    figures.links = DescribeLinks(outcome, scenario_, program_, cluster, 0);
  }
  return prediction;
}

double StepSimulation::StepTime(const profiles::Profile& profile,
                                const topology::ClusterSpec& cluster) const {
  if (scenario_.metric == scenarios::StepMetric::kForwardBackward) {
    reports::ForwardBackward forward_backward;
    Run(profile, cluster, FactsOf(scenario_, {}), false, forward_backward);
    return Seconds(forward_backward);
  }
  return FullStepTime(profile, cluster);
}

std::vector<reports::OtherJobFigure> OtherJobFigures(const scenarios::Scenario& scenario,
                                                     const sim::Outcome& outcome) {
  std::vector<reports::OtherJobFigure> figures;
  for (std::size_t index = 0; index < outcome.other_jobs.size(); ++index) {
    const scenarios::OtherJob& job = scenario.other_jobs[index];
    const sim::OtherJobOutcome& fared = outcome.other_jobs[index];
    figures.push_back({.name = job.name,
                       .nodes = job.nodes,
                       .num_ranks = job.scenario.job.num_ranks,
                       .num_steps = fared.num_steps,
                       .step_time_s = fared.step_s,
                       .alone_step_time_s = fared.alone_step_s});
  }
  return figures;
}

Prediction Predict(const scenarios::Scenario& scenario, const std::string& commit) {
  return StepSimulation(scenario).Predict(commit);
}

}  // namespace isthmus::studies
