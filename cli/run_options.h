#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/program/program.h"
#include "scenarios/scenario.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name.
class App;
}

/// What `isthmus run` and each rank it starts agree on.
namespace isthmus::cli {

/// What decides a real run beside the scenario; equal on all ranks.
struct RunOptions {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string ranks_on = "cpu";  ///< cpu or gpu
  std::int64_t num_steps = 10;
  std::int64_t num_warmup_steps = 2;
  std::optional<std::string> trace;
  std::optional<std::string> checkpoint;
  std::int64_t checkpoint_interval = 0;  // in steps; 0: only after the last
  std::optional<std::string> resume;
  std::int64_t timeout_s = 60;  ///< of every wait of a rank for others
  bool json = false;
};

/// Makes `app` read all of them; `options` must outlive its parsing.
void AddRunOptions(CLI::App& app, RunOptions& options);

/// Throws base::Error where an option of `app`, or of a verb of it, was given an empty text, as
/// --checkpoint "$UNSET" gives: it names nothing, and must not count as left out.
void CheckValues(const CLI::App& app);

/// The arguments that AddRunOptions reads as `options`.
std::vector<std::string> ToArguments(const RunOptions& options);

/// A scenario as real ranks execute it: planned for one step, which they repeat.
struct RunnableScenario {
  scenarios::Scenario scenario;
  plan::Program program;
};

/// Throws base::ScenarioError for mistakes in the files, and base::Error that lists everything that
/// can be simulated but not run: modules whose backward is absent, fp8.
RunnableScenario LoadRunnable(const RunOptions& options);

}  // namespace isthmus::cli
