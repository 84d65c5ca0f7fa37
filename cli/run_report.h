#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "backend/torch/run_rank.h"
#include "cli/run_options.h"

/// What rank 0 tells of a real run. Needs no torch.
namespace isthmus::cli {

/// Prints steps on standard error as they end: the first, the last, and of the others one every
/// half second.
class StepPrinter {
 public:
  explicit StepPrinter(std::int64_t num_steps) : num_steps_(num_steps) {}
  void Print(const backend::StepProgress& step);

 private:
  std::int64_t num_steps_;
  std::int64_t num_seen_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

/// The answer of a run, for people or (options.json) as one JSON object.
std::string RenderRun(const RunOptions& options, const RunnableScenario& runnable,
                      const backend::RankOutcome& outcome);

}  // namespace isthmus::cli
