#include "studies/predict.h"

#include "base/error.h"
#include "base/hash.h"
#include "reports/forward_backward.h"
#include "studies/duty_relief.h"
#include "studies/internal/bottleneck_links.h"
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

void Run(const plan::Program& program, const topology::ClusterSpec& cluster,
         const profiles::Profile& profile, sim::Network network, const sim::RunFacts& facts,
         traces::TraceSink& sink, plan::Allocator allocator = plan::Allocator::kCaching) {
  const sim::SimOptions options{
      .network = network, .record_memory_counters = false, .allocator = allocator};
  const sim::Outcome outcome =
      sim::Simulate(program, topology::Cluster(cluster), profile, options, facts, sink);
  if (outcome.deadlock) throw base::Error(outcome.explanation);
}

// Of the whole step.
double FullStepTime(const plan::Program& program, const topology::ClusterSpec& cluster,
                    const profiles::Profile& profile, sim::Network network,
                    const scenarios::Scenario& scenario) {
  StepClock clock;
  Run(program, cluster, profile, network, FactsOf(scenario, {}), clock);
  return clock.seconds();
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
  if (!FollowsPowerBalance(scenario.profile)) return;
  profile_ = RelievedProfile(program_, scenario.profile, [&](const profiles::Profile& profile) {
    return FullStepTime(program_, scenario.cluster, profile, network_, scenario);
  });
}

Prediction StepSimulation::PredictInto(reports::Analysis& analysis,
                                       const std::string& commit) const {
  reports::ForwardBackward forward_backward;
  traces::TeeSink sink({&analysis, &forward_backward});
  Run(program_, scenario_.cluster, profile_, network_, FactsOf(scenario_, commit), sink,
      scenario_.job.allocator);

  Prediction prediction{.figures = analysis.figures()};
  prediction.forward_backward_time_s = Seconds(forward_backward);
  prediction.step_time_s = scenario_.metric == scenarios::StepMetric::kForwardBackward
                               ? prediction.forward_backward_time_s
                               : prediction.figures.step_time_s;
  return prediction;
}

Prediction StepSimulation::Predict(const std::string& commit) const {
  reports::Analysis analysis;
  return PredictInto(analysis, commit);
}

Prediction StepSimulation::PredictWithPath(const std::string& commit) const {
  reports::Analysis analysis(reports::Analysis::Path::kWhole);
  Prediction prediction = PredictInto(analysis, commit);
  prediction.figures.assumptions.push_back(NetworkAssumption(scenario_.cluster, network_));
  internal::NameBottleneckLinks(program_, topology::Cluster(scenario_.cluster),
                                prediction.figures.path);
  return prediction;
}

double StepSimulation::StepTime(const profiles::Profile& profile,
                                const topology::ClusterSpec& cluster) const {
  if (scenario_.metric == scenarios::StepMetric::kForwardBackward) {
    reports::ForwardBackward forward_backward;
    Run(program_, cluster, profile, network_, FactsOf(scenario_, {}), forward_backward);
    return Seconds(forward_backward);
  }
  return FullStepTime(program_, cluster, profile, network_, scenario_);
}

Prediction Predict(const scenarios::Scenario& scenario, const std::string& commit) {
  return StepSimulation(scenario).Predict(commit);
}

}  // namespace isthmus::studies
