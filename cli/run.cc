#include <algorithm>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "backend/launch/launcher.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/rank_program.h"
#include "traces/trace_file.h"

namespace isthmus::cli {
namespace {

namespace fs = std::filesystem;

// What several ranks a core still make a training run of, if a slow one.
constexpr int kRanksPerCore = 8;
constexpr int kAlwaysAllowed = 32;
constexpr std::size_t kShownLines = 8;

void CheckNumberOfRanks(const plan::Program& program) {
  const int num_cores = NumCores();
  const int allowed = std::max(kAlwaysAllowed, kRanksPerCore * num_cores);
  if (program.num_ranks <= allowed) return;
  throw base::Error(
      fmt::format("the scenario has {} ranks; on this machine of {} cores up to {} are started\n"
                  "  hint: start isthmus-rank on many machines with torchrun, srun or mpirun "
                  "(docs/cluster.md)",
                  program.num_ranks, num_cores, allowed));
}

// What ranks keep all the time; what comes on top of it in a step depends on more than the program.
base::Bytes KeptBytes(const plan::Program& program) {
  base::Bytes bytes;
  for (int number = 0; number < program.num_ranks; ++number) {
    const base::Rank rank{number};
    for (const plan::Storage& storage : program.role(rank).storages) {
      if (storage.persistent) bytes = bytes + program.Size(rank, storage.size);
    }
  }
  return bytes;
}

// Linux would end a rank in the middle of things.
void CheckMemory(const plan::Program& program) {
  const base::Bytes needed = KeptBytes(program);
  const base::Bytes available = MachineMemory();
  if (needed < available) return;
  throw base::Error(
      fmt::format("weights, gradients and optimizer states of the {} ranks take {}, this machine "
                  "has {}\n  hint: a smaller model (scenarios/host/twin.yaml is one), or more "
                  "machines (docs/cluster.md); isthmus simulate only predicts",
                  program.num_ranks, base::FormatBytes(needed), base::FormatBytes(available)));
}

// A trace that could not be written fails before anything runs. The file is left as it is.
void CheckTrace(const RunOptions& options) {
  if (options.trace) static_cast<void>(traces::OpenTraceFile(*options.trace));
}

// Rank 0's output is the answer, all else goes to standard error with the rank's name.
class RankOutput {
 public:
  void Take(const backend::RankLine& line) {
    if (line.rank == 0 && line.stream == backend::RankLine::Stream::kOutput) {
      answer_ += line.text;
      answer_ += '\n';
      return;
    }
    const std::string name = fmt::format("rank {}: ", line.rank);
    const bool is_named = line.rank == 0 || line.text.starts_with(name);
    Tell(fmt::format("{}{}\n", is_named ? "" : name, line.text));
  }
  const std::string& answer() const { return answer_; }

 private:
  std::string answer_;
};

[[noreturn]] void ThrowFailure(const backend::LaunchOutcome& outcome) {
  const backend::RankFailure& failure = *outcome.first_failure;
  std::string text = fmt::format("isthmus run: error: {}", backend::Describe(failure));
  if (failure.signal == SIGKILL) text += "; the system does that where memory runs out";
  const std::vector<std::string>& lines = failure.last_lines;
  const std::size_t skipped = lines.size() - std::min(lines.size(), kShownLines);
  if (!lines.empty()) text += "\n  its last lines:";
  for (std::size_t index = skipped; index < lines.size(); ++index) text += "\n    " + lines[index];
  if (!outcome.ended.empty()) {
    text += fmt::format("\n  ended with it: {} other rank{}", outcome.ended.size(),
                        outcome.ended.size() == 1 ? "" : "s");
  }
  if (failure.signal == 0 && failure.exit_code == kUserError) throw base::Error(text);
  throw base::IoError(text);
}

}  // namespace

int Run(const RunCommandOptions& options) {
  const RunnableScenario runnable = LoadRunnable(options.run);
  CheckNumberOfRanks(runnable.program);
  if (options.run.ranks_on == "cpu") CheckMemory(runnable.program);
  const fs::path program = FindRankProgram(options.run.ranks_on == "gpu");
  CheckTrace(options.run);

  RankOutput output;
  backend::LaunchOptions launch;
  launch.program = program.string();
  launch.arguments = ToArguments(options.run);
  launch.num_ranks = runnable.program.num_ranks;
  launch.port = options.port;
  launch.on_line = [&output](const backend::RankLine& line) { output.Take(line); };
  const backend::LaunchOutcome outcome = backend::Launch(launch);
  if (outcome.first_failure) ThrowFailure(outcome);
  if (outcome.interrupt) {
    throw Interrupted("isthmus run: interrupted; all ranks have ended", *outcome.interrupt);
  }
  Write({}, output.answer());
  return 0;
}

}  // namespace isthmus::cli
