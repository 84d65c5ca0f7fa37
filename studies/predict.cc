#include "studies/predict.h"

#include "base/error.h"
#include "base/hash.h"
#include "plan/program/program.h"
#include "reports/analysis.h"
#include "reports/forward_backward.h"
#include "sim/simulate.h"
#include "topology/cluster.h"
#include "traces/tee_sink.h"

namespace isthmus::studies {

Prediction Predict(const scenarios::Scenario& scenario, const std::string& commit) {
  const topology::Cluster cluster(scenario.cluster);
  const plan::Program program = plan::Build(scenario.job);
  const sim::RunFacts facts{.scenario_name = scenario.name,
                            .scenario_hash = base::HashText(scenario.hash),
                            .commit = commit,
                            .seed = scenario.seed,
                            .assumptions = scenario.assumptions};
  reports::Analysis analysis;
  reports::ForwardBackward forward_backward;
  traces::TeeSink sink({&analysis, &forward_backward});
  const sim::Outcome outcome = sim::Simulate(program, cluster, scenario.profile,
                                             {.record_memory_counters = false}, facts, sink);
  if (outcome.deadlock) throw base::Error(outcome.explanation);

  constexpr double kPicosecond = 1e-12;
  Prediction prediction{.figures = analysis.figures()};
  prediction.forward_backward_time_s =
      static_cast<double>(forward_backward.duration_ps().value_or(0)) * kPicosecond;
  prediction.step_time_s = scenario.metric == scenarios::StepMetric::kForwardBackward
                               ? prediction.forward_backward_time_s
                               : prediction.figures.step_time_s;
  return prediction;
}

}  // namespace isthmus::studies
