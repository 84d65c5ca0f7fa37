// isthmus-rank: one rank of a scenario's program on real tensors. `isthmus run`, torchrun, srun or
// mpirun start it once per rank.

#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "backend/launch/rank_environment.h"
#include "backend/torch/run_rank.h"
#include "base/error.h"
#include "base/hash.h"
#include "cli/build_info.h"
#include "cli/exit_code.h"
#include "cli/measure_rank.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/run_report.h"

namespace isthmus::cli {
namespace {

backend::LearningRate::Decay ToDecay(scenarios::LearningRateSchedule schedule) {
  switch (schedule) {
    case scenarios::LearningRateSchedule::kConstant:
      return backend::LearningRate::Decay::kConstant;
    case scenarios::LearningRateSchedule::kLinear:
      return backend::LearningRate::Decay::kLinear;
    case scenarios::LearningRateSchedule::kCosine:
      return backend::LearningRate::Decay::kCosine;
  }
  return backend::LearningRate::Decay::kConstant;
}

backend::TrainingOptions ToTrainingOptions(const scenarios::Scenario& scenario) {
  const scenarios::Training& training = scenario.training;
  return {.learning_rate = {.peak = training.learning_rate,
                            .minimum = training.min_learning_rate,
                            .decay = ToDecay(training.schedule),
                            .warmup_steps = training.warmup_steps,
                            .decay_steps = training.decay_steps},
          .beta1 = training.betas[0],
          .beta2 = training.betas[1],
          .epsilon = training.epsilon,
          .weight_decay = training.weight_decay,
          .clip_norm = training.clip_norm,
          .initial_std = training.initial_std,
          .loss_scaling = {.initial_scale = training.loss_scale.initial,
                           .growth_factor = training.loss_scale.growth_factor,
                           .backoff_factor = training.loss_scale.backoff_factor,
                           .growth_interval = training.loss_scale.growth_interval},
          .seed = scenario.seed};
}

backend::RankRunOptions ToRankOptions(const RunOptions& options,
                                      const scenarios::Scenario& scenario,
                                      const backend::RankEnvironment& environment) {
  const bool is_random = scenario.training.task == scenarios::TrainingTask::kRandom;
  return {
      .environment = environment,
      .device = options.ranks_on == "gpu" ? backend::DeviceKind::kGpu : backend::DeviceKind::kCpu,
      .timeout = std::chrono::seconds(options.timeout_s),
      .num_steps = options.num_steps,
      .num_warmup_steps = options.num_warmup_steps,
      .training = ToTrainingOptions(scenario),
      .data = is_random ? backend::DataSource::kRandom : backend::DataSource::kCaptions,
      .trace_path = options.trace.value_or(""),
      .facts = {.scenario_name = scenario.name,
                .scenario_hash = base::HashText(scenario.hash),
                .commit = std::string(BuildCommit())},
      .checkpoint_folder = options.checkpoint.value_or(""),
      .checkpoint_interval = options.checkpoint_interval,
      .resume_folder = options.resume.value_or("")};
}

void CheckWorldSize(const RunOptions& options, const plan::Program& program,
                    const backend::RankEnvironment& environment) {
  if (environment.world_size == program.num_ranks) return;
  throw base::Error(fmt::format("{}: the scenario has {} ranks, but {} were started",
                                options.scenario, program.num_ranks, environment.world_size));
}

int RunAsRank(const RunOptions& options, const backend::RankEnvironment& environment) {
  const RunnableScenario runnable = LoadRunnable(options);
  CheckWorldSize(options, runnable.program, environment);
  backend::RankRunOptions rank_options = ToRankOptions(options, runnable.scenario, environment);
  StepPrinter printer(options.num_steps);
  rank_options.on_step = [&printer](const backend::StepProgress& step) { printer.Print(step); };
  const backend::RankOutcome outcome =
      backend::RunRank(runnable.program, base::Rank{environment.rank}, rank_options);
  if (environment.rank == 0) Write({}, RenderRun(options, runnable, outcome));
  return 0;
}

int Main(int argc, char** argv, std::string& name) {
  if (const auto exit_code = MeasureIfAsked(argc, argv)) return *exit_code;
  CLI::App app{"One rank of a scenario; started by isthmus run, torchrun, srun or mpirun",
               "isthmus-rank"};
  RunOptions options;
  app.set_version_flag("--version",
                       fmt::format("isthmus-rank {} ({})", BuildVersion(), BuildCommit()));
  AddRunOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    throw base::Error(error.what());
  }
  CheckValues(app);
  const backend::RankEnvironment environment =
      backend::ReadRankEnvironment(backend::EnvironmentOfThisProcess());
  name = fmt::format("rank {}", environment.rank);
  return RunAsRank(options, environment);
}

}  // namespace
}  // namespace isthmus::cli

int main(int argc, char** argv) {
  isthmus::cli::IgnoreLostReaders();
  std::string name = "isthmus-rank";
  const auto report = [&name](std::string_view text) {
    // Texts of files and of communication bring the word themselves.
    const bool complete = text.find("error: ") != std::string_view::npos;
    isthmus::cli::Tell(fmt::format("{}: {}{}\n", name, complete ? "" : "error: ", text));
  };
  try {
    return isthmus::cli::Main(argc, argv, name);
  } catch (const isthmus::base::IoError& error) {
    report(error.what());
    return isthmus::cli::kWorldFailure;
  } catch (const isthmus::base::Error& error) {
    report(error.what());
    return isthmus::cli::kUserError;
  } catch (const std::bad_alloc&) {
    report("out of memory");
    return isthmus::cli::kWorldFailure;
  } catch (const std::exception& error) {
    report(error.what());
    return isthmus::cli::kWorldFailure;
  }
}
