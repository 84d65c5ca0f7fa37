#include "sim/simulate.h"

#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/network_choice.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "scenarios/scenario.h"
#include "studies/band.h"
#include "studies/duty_relief.h"
#include "studies/link_figures.h"
#include "studies/predict.h"

namespace isthmus::cli {
namespace {

/// How many links to name; absent if there is nothing to say about links.
std::optional<std::size_t> NumLinks(const SimulateOptions& options) {
  if (options.links.empty()) return std::nullopt;
  std::size_t number = 0;
  const char* end = options.links.data() + options.links.size();
  const auto [stop, failed] = std::from_chars(options.links.data(), end, number);
  if (failed != std::errc{} || stop != end) {
    throw base::Error(
        fmt::format("--links={}: not a number of links; e.g. --links=20", options.links));
  }
  if (options.network != "flow") {
    throw base::Error(
        fmt::format("--links: only flows cross links, and the network is {}\n  hint: add "
                    "--network flow",
                    options.network));
  }
  return number;
}

sim::SimOptions EngineOptions(const SimulateOptions& options) {
  sim::SimOptions engine;
  if (options.fold != "auto" && options.fold != "off") {
    throw base::Error(fmt::format("--fold {}: not a choice; allowed: auto, off", options.fold));
  }
  engine.network = ParseNetwork(options.network);
  engine.folding = options.fold == "auto" ? sim::Folding::kAuto : sim::Folding::kOff;
  engine.expansion = options.expanded ? sim::Expansion::kExpanded : sim::Expansion::kFused;
  engine.record_memory_counters = !options.traces.empty();
  engine.record_links = NumLinks(options).has_value();
  return engine;
}

/// Of the step, whatever the scenario's metric is: the figures are of the whole step.
reports::Band BandOf(scenarios::Scenario scenario, sim::Network network) {
  scenario.metric = scenarios::StepMetric::kFull;
  const studies::StepSimulation simulation(scenario, network);
  const double step_time_s = simulation.StepTime(simulation.profile(), scenario.cluster);
  const studies::StepBand band = studies::EstimateBand(simulation, step_time_s);
  return {.low_step_time_s = band.low_step_time_s, .high_step_time_s = band.high_step_time_s};
}

}  // namespace

int Simulate(const SimulateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  sim::SimOptions engine = EngineOptions(options);
  std::vector<std::string> outputs = options.traces;
  if (options.output.file) outputs.push_back(*options.output.file);
  CheckFiles({options.scenario}, outputs);
  Progress progress("loading the scenario");
  scenarios::Scenario scenario = scenarios::LoadScenario(options.scenario, options.overrides);
  engine.allocator = scenario.job.allocator;
  const topology::Cluster cluster(scenario.cluster);
  progress.Begin("planning");
  const studies::StepSimulation planned(scenario, engine.network);
  const plan::Program& program = planned.program();
  engine.other_jobs = planned.OtherJobs();
  progress.Begin("simulating");
  if (studies::FollowsPowerBalance(planned.profile()))
    scenario.assumptions.emplace_back(studies::kClockIsRelieved);

  TraceOutputs traces(options.traces, {&progress});
  scenario.assumptions.push_back(studies::NetworkAssumption(scenario.cluster, engine.network));
  const sim::RunFacts facts{.scenario_name = scenario.name,
                            .scenario_hash = base::HashText(scenario.hash),
                            .commit = std::string(BuildCommit()),
                            .seed = scenario.seed,
                            .assumptions = scenario.assumptions};
  const sim::Outcome outcome =
      sim::Simulate(program, cluster, planned.profile(), engine, facts, traces.sink());
  if (outcome.deadlock) throw base::Error(outcome.explanation);

  reports::Figures figures = traces.analysis().figures();
  if (engine.network == sim::Network::kFlow)
    figures.network = reports::NetworkUse{outcome.num_flows, outcome.num_shared_flows};
  if (outcome.link_history)
    figures.links = studies::DescribeLinks(outcome, scenario, program, cluster, *NumLinks(options));
  figures.other_jobs = studies::OtherJobFigures(scenario, outcome);
  if (engine.record_links && !figures.has_times)
    figures.assumptions.emplace_back("no links: without kernels nothing is timed");
  if (options.band && !figures.has_times) {
    figures.assumptions.emplace_back("no band: without kernels there is no step time to vary");
  } else if (options.band) {
    progress.Begin("simulating variations");
    figures.band = BandOf(scenario, engine.network);
  }
  if (options.timing) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    figures.cost =
        reports::EngineCost{.wall_s = wall.count(), .peak_rss_bytes = usage.ru_maxrss * 1024};
  }
  if (studies::HasPowerBalance(scenario.profile)) {
    const sim::DutyRelief relief = studies::EstimateDutyRelief(
        program, scenario.profile, planned.profile(), figures.step_time_s);
    figures.duty_relief = reports::DutyRelief{relief.clock_ratio, relief.step_time_s};
  }
  WriteFigures(options.output, figures);
  return outcome.fits ? 0 : 1;
}

}  // namespace isthmus::cli
