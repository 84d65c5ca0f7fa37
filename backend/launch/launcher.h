#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/launch/rank_environment.h"
#include "base/units.h"

/// Ranks of one job as processes of this machine.
namespace isthmus::backend {

/// A line that a rank printed, without its line break.
struct RankLine {
  enum class Stream : std::uint8_t { kOutput, kError };
  int rank = 0;
  Stream stream = Stream::kOutput;
  std::string_view text;  ///< valid during the call only
};

struct LaunchOptions {
  std::string program;                 ///< path of what every rank runs
  std::vector<std::string> arguments;  ///< the same for every rank
  int num_ranks = 1;
  std::optional<std::uint16_t> port;  ///< on which rank 0 will listen; absent: a free one
  /// Put over this process's variables, and put over by those that say which rank it is.
  Variables environment;
  base::Seconds grace{10.0};    ///< from the first failure until the others are asked to end
  base::Seconds patience{5.0};  ///< from being asked to end until being killed
  /// Called by the thread that called Launch(), in the order of each stream.
  std::function<void(const RankLine&)> on_line = [](const RankLine&) {};
};

/// How a rank failed.
struct RankFailure {
  int rank = 0;
  int exit_code = 0;                    ///< if no signal killed it; never 0 then
  int signal = 0;                       ///< that killed it; 0: none
  std::vector<std::string> last_lines;  ///< up to 20, of both streams, as they came
};

/// "rank 2 ended with exit code 3", "rank 2 was killed by signal 9 (Killed)".
std::string Describe(const RankFailure& failure);

/// How a job ended.
struct [[nodiscard]] LaunchOutcome {
  std::optional<RankFailure> first_failure;
  std::vector<int> ended;        ///< ranks that did not end by themselves after a failure
  std::optional<int> interrupt;  ///< the signal that this process got meanwhile
  bool ok() const { return !first_failure && !interrupt; }
};

/// Starts `options.num_ranks` processes and waits until all have ended.
///
/// Each process runs in a group of its own, reads nothing, and sees the variables of
/// RankEnvironment (torchrun's names, 127.0.0.1 as the master). OMP_NUM_THREADS is 1 unless it is
/// set.
///
/// When a rank fails (exit code other than 0, or killed), the others have `grace` to report what
/// they see of it; then they get SIGTERM, and `patience` later SIGKILL. The outcome names the rank
/// that failed first. Where several are found ended at once, a killed one counts as first, since
/// the others then report its loss; else the lowest.
/// SIGINT, SIGTERM and SIGHUP to this process go on to all ranks, which are killed after `patience`
/// or at the second signal; the caller learns of it by the outcome.
///
/// Nothing is left behind: whatever a rank started is killed when the rank ends, and when this
/// process dies, even by SIGKILL, the system kills its ranks.
///
/// Throws base::Error if `port` is in use, base::IoError if a process can't be started (those that
/// were are gone then). The calling thread must outlive the call and have other threads block the
/// three signals: one that doesn't lets the signal end the process.
/// Cost: wakes up when a rank prints or ends, and five times a second.
LaunchOutcome Launch(const LaunchOptions& options);

}  // namespace isthmus::backend
