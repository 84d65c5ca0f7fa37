#include "cli/run_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/text.h"
#include "cli/internal/json_text.h"
#include "cli/output.h"

namespace isthmus::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const backend::StepProgress& step) {
  std::string line =
      fmt::format("step {:>5}  loss {:<9.5g} {:>9}  {:>9} tokens/s  {:>9}", step.step, step.loss,
                  base::FormatSeconds(base::Seconds(step.step_s)),
                  base::FormatCount(static_cast<std::int64_t>(step.tokens_per_s)),
                  base::FormatBytes(base::Bytes(step.memory_bytes)));
  if (step.gradient_norm > 0.0) line += fmt::format("  norm {:.4g}", step.gradient_norm);
  if (step.loss_scale != 1.0) line += fmt::format("  loss scale {:g}", step.loss_scale);
  if (step.skipped) line += "  skipped: overflow";
  return line;
}

Json StepJson(const backend::StepProgress& step) {
  return {{"step", step.step},
          {"loss", step.loss},
          {"step_time_s", step.step_s},
          {"tokens_per_s", step.tokens_per_s},
          {"gradient_norm", step.gradient_norm},
          {"loss_scale", step.loss_scale},
          {"skipped", step.skipped},
          {"memory_bytes", step.memory_bytes}};
}

std::int64_t NumSkipped(const backend::RankOutcome& outcome) {
  std::int64_t num_skipped = 0;
  for (const backend::StepProgress& step : outcome.steps) num_skipped += step.skipped ? 1 : 0;
  return num_skipped;
}

// Of the whole job, at the median step.
double TokensPerSecond(const RunnableScenario& runnable, const backend::RankOutcome& outcome) {
  const plan::Workload& workload = runnable.scenario.job.workload;
  const auto tokens = static_cast<double>(workload.sequence_length * workload.global_batch);
  return outcome.median_step_s > 0.0 ? tokens / outcome.median_step_s : 0.0;
}

std::string RenderJson(const RunOptions& options, const RunnableScenario& runnable,
                       const backend::RankOutcome& outcome) {
  Json steps = Json::array();
  for (const backend::StepProgress& step : outcome.steps) steps.push_back(StepJson(step));
  const scenarios::Scenario& scenario = runnable.scenario;
  Json json{{"scenario", {{"name", scenario.name}, {"hash", base::HashText(scenario.hash)}}},
            {"program_hash", base::HashText(plan::Hash(runnable.program))},
            {"placement", plan::ToText(runnable.program.placement)},
            {"num_ranks", runnable.program.num_ranks},
            {"ranks_on", options.ranks_on},
            {"step_time_s", outcome.median_step_s},
            {"tokens_per_s", TokensPerSecond(runnable, outcome)},
            {"memory_bytes", outcome.memory_bytes},
            {"num_skipped", NumSkipped(outcome)},
            {"steps", steps}};
  if (options.trace) json["trace"] = *options.trace;
  if (options.checkpoint) json["checkpoint"] = *options.checkpoint;
  return internal::JsonText(json);
}

std::string RenderText(const RunOptions& options, const RunnableScenario& runnable,
                       const backend::RankOutcome& outcome) {
  std::string text = fmt::format(
      "{}  {}, {} on {}, {}\n", runnable.scenario.name, plan::ToText(runnable.program.placement),
      base::Counted(runnable.program.num_ranks, "rank", "ranks"), options.ranks_on,
      base::Counted(static_cast<std::int64_t>(outcome.steps.size()), "step", "steps"));
  if (!outcome.steps.empty()) {
    text += fmt::format("  loss        {:.5g} at step {}, {:.5g} at step {}\n",
                        outcome.steps.front().loss, outcome.steps.front().step,
                        outcome.steps.back().loss, outcome.steps.back().step);
  }
  text += fmt::format("  step time   {}, the median after warm-up\n",
                      base::FormatSeconds(base::Seconds(outcome.median_step_s)));
  text +=
      fmt::format("  throughput  {} tokens/s\n",
                  base::FormatCount(static_cast<std::int64_t>(TokensPerSecond(runnable, outcome))));
  text += fmt::format("  memory      {}, the most that tensors of rank 0 took\n",
                      base::FormatBytes(base::Bytes(outcome.memory_bytes)));
  const std::int64_t num_skipped = NumSkipped(outcome);
  if (num_skipped > 0)
    text +=
        fmt::format("  skipped     {}, overflow\n", base::Counted(num_skipped, "step", "steps"));
  if (options.trace) text += fmt::format("  trace       {}\n", *options.trace);
  if (options.checkpoint) text += fmt::format("  checkpoint  {}\n", *options.checkpoint);
  return text;
}

}  // namespace

void StepPrinter::Print(const backend::StepProgress& step) {
  const auto now = std::chrono::steady_clock::now();
  ++num_seen_;
  const bool is_due =
      !last_ || num_seen_ == num_steps_ || now - *last_ >= std::chrono::milliseconds(500);
  if (!is_due) return;
  last_ = now;
  Tell(Line(step) + "\n");
}

std::string RenderRun(const RunOptions& options, const RunnableScenario& runnable,
                      const backend::RankOutcome& outcome) {
  return options.json ? RenderJson(options, runnable, outcome)
                      : RenderText(options, runnable, outcome);
}

}  // namespace isthmus::cli
