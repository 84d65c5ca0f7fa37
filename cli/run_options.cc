#include "cli/run_options.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/torch/checkpoint/beside.h"
#include "base/error.h"
#include "cli/output.h"

namespace isthmus::cli {
namespace {

bool IsTrained(const plan::Module& module) {
  return !module.settings.frozen || (module.projector && !module.projector->frozen);
}

std::vector<std::string> ReasonsAgainst(const plan::Job& job) {
  std::vector<std::string> reasons;
  for (const plan::Module& module : job.modules) {
    if (module.settings.backward == plan::BackwardMode::kAbsent && IsTrained(module)) {
      reasons.push_back(
          fmt::format("modules.{}.backward: absent is for simulation; a trained module needs real",
                      module.name));
    }
    if (module.settings.precision == plan::DType::kFp8) {
      reasons.push_back(
          fmt::format("modules.{}.precision: fp8 is for simulation; use bf16, fp16, fp32 or fp64",
                      module.name));
    }
  }
  return reasons;
}

}  // namespace

void AddRunOptions(CLI::App& app, RunOptions& options) {
  app.add_option("SCENARIO", options.scenario, "A scenario file")->required();
  app.add_option("--set", options.overrides, "Override a value: --set workload.global_batch=512")
      ->type_name("KEY=VALUE");
  app.add_option("--ranks-on", options.ranks_on, "Where ranks compute: cpu or gpu")
      ->check(CLI::IsMember({"cpu", "gpu"}))
      ->capture_default_str();
  app.add_option("--steps", options.num_steps, "Training steps")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--warmup", options.num_warmup_steps, "First steps that no figure counts")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--trace", options.trace,
                 "Write the measured trace of the median step (.isthmus, .pftrace, .json, ...)")
      ->type_name("FILE");
  CLI::Option* checkpoint =
      app.add_option("--checkpoint", options.checkpoint, "Write the state after the last step")
          ->type_name("DIR");
  app.add_option("--checkpoint-every", options.checkpoint_interval,
                 "Write it after every N steps too, in the place of the one before")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000))
      ->needs(checkpoint);
  app.add_option("--resume", options.resume, "Go on from a checkpoint, of any layout")
      ->type_name("DIR");
  app.add_option("--timeout", options.timeout_s, "Longest wait of a rank for others")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--json", options.json, "One JSON object on standard output, nothing else there");
}

void CheckValues(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (std::ranges::count(option->results(), "") == 0) continue;
    throw base::Error(fmt::format("{}: its value is empty", option->get_name()));
  }
  for (const CLI::App* verb : app.get_subcommands()) CheckValues(*verb);
}

std::vector<std::string> ToArguments(const RunOptions& options) {
  std::vector<std::string> arguments = {options.scenario};
  const auto add = [&arguments](const char* name, const std::string& value) {
    arguments.emplace_back(name);
    arguments.push_back(value);
  };
  for (const std::string& assignment : options.overrides) add("--set", assignment);
  add("--ranks-on", options.ranks_on);
  add("--steps", fmt::format("{}", options.num_steps));
  add("--warmup", fmt::format("{}", options.num_warmup_steps));
  if (options.trace) add("--trace", *options.trace);
  if (options.checkpoint) add("--checkpoint", *options.checkpoint);
  if (options.checkpoint_interval > 0) {
    add("--checkpoint-every", fmt::format("{}", options.checkpoint_interval));
  }
  if (options.resume) add("--resume", *options.resume);
  add("--timeout", fmt::format("{}", options.timeout_s));
  if (options.json) arguments.emplace_back("--json");
  return arguments;
}

RunnableScenario LoadRunnable(const RunOptions& options) {
  std::vector<std::string> outputs;
  for (const auto& output : {options.trace, options.checkpoint}) {
    if (output) outputs.push_back(*output);
  }
  if (options.checkpoint)
    outputs.push_back(backend::Beside(*options.checkpoint, backend::kPartial));
  std::vector<std::string> inputs = {options.scenario};
  if (options.resume && options.resume != options.checkpoint) inputs.push_back(*options.resume);
  CheckFiles(inputs, outputs);
  RunnableScenario runnable;
  runnable.scenario =
      scenarios::LoadScenario(options.scenario, options.overrides, scenarios::DefaultSearchPaths(),
                              scenarios::Purpose::kExecute);
  if (!runnable.scenario.other_jobs.empty()) {
    throw base::Error(
        fmt::format("{}: error: other_jobs: one job is run, the others are not\n  hint: --set "
                    "other_jobs=[]",
                    options.scenario));
  }
  const std::vector<std::string> reasons = ReasonsAgainst(runnable.scenario.job);
  if (!reasons.empty()) {
    throw base::Error(fmt::format("{}: error: can't be run on real ranks\n  {}", options.scenario,
                                  fmt::join(reasons, "\n  ")));
  }
  runnable.scenario.job.num_steps = 1;
  runnable.program = plan::Build(runnable.scenario.job);
  return runnable;
}

}  // namespace isthmus::cli
