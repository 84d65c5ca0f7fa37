#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "plan/model/kernel.h"
#include "plan/program/program.h"
#include "traces/trace.h"

/// From a program to a measured trace, in real time.
namespace isthmus::backend {

struct ExecuteOptions {
  // Facts for the trace's header that execution itself does not know.
  std::string scenario_name = {};
  std::string scenario_hash = {};
  std::string commit = {};
  std::uint64_t seed = 0;
  /// The run is given up when no rank has started an op for this long. (A deadlock is found at
  /// once, without waiting: this is for a rank that never comes back from an op.)
  std::chrono::milliseconds patience{30'000};
  /// The host is one thread without lanes, as that of real CPU ranks: it waits for the values of an
  /// op before it issues it, runs Compute to its end, and only posts collectives and messages (sums
  /// over tp, which pack several values, it waits for). Stricter than lanes: what ends here ends
  /// with them.
  bool in_order_host = false;
  /// Called by a rank's thread before it starts op `op` of its role; what it throws ends the run.
  /// Ranks call it at the same time.
  std::function<void(base::Rank rank, std::uint32_t op)> before_op = {};
};

/// What one rank sent to another.
struct ChannelCount {
  base::Rank from{0};
  base::Rank to{0};
  std::vector<base::Bytes> messages;  // in the order sent
  friend bool operator==(const ChannelCount&, const ChannelCount&) = default;
};

/// What happened on one communicator.
struct GroupCount {
  std::string name;                 // "llm tp+cp", "vision->llm", "world"
  bool compute = false;             // Compute ops met, not collectives
  std::vector<base::Rank> members;  // in communicator order
  std::vector<base::Rank> joined;   // ranks whose threads came, ascending
  std::int64_t num_meetings = 0;
  std::map<plan::CollectiveKind, base::Bytes> bytes;  // summed over meetings, each counted once
};

/// Why a run ended and what was moved.
struct [[nodiscard]] Outcome {
  bool deadlock = false;  // no rank can proceed; `explanation` says which op each is in
  std::string explanation;
  std::int64_t end_ps = 0;
  std::uint64_t num_ops = 0;           // executed
  std::vector<ChannelCount> channels;  // by (from, to); only those that moved something
  std::vector<GroupCount> groups;      // communicators that a rank's program names, each once
  /// [rank][lane]: ops in the order they started.
  std::vector<std::vector<std::vector<std::uint32_t>>> ops_by_lane;
};

/// Executes every op of `program`, each rank on a thread of its own, and records a measured trace.
///
/// Nothing is computed and no tensors exist: messages and collectives carry sizes. They follow
/// strict rendezvous: a transfer ends only when both sides have posted it, a collective (or a
/// Compute op with a group) when all members have come. Transfers of zero bytes and collectives of
/// zero bytes are skipped. Order of ops, bytes and members are functions of the program; times are
/// not.
///
/// Throws base::Error when ranks contradict each other (a message of different sizes, a collective
/// of different kinds, a group with different members) or `program` has more ranks than threads are
/// sensible; base::IoError when nothing moves for `options.patience`. What a rank's thread throws
/// stops the others; if several throw, the lowest rank's is thrown on.
Outcome Execute(const plan::Program& program, const ExecuteOptions& options,
                traces::TraceSink& sink);

}  // namespace isthmus::backend
