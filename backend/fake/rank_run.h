#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "backend/fake/channel.h"
#include "backend/fake/communicator.h"
#include "backend/fake/execute.h"
#include "backend/fake/fabric.h"
#include "backend/fake/mailbox.h"
#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::backend {

/// What the ranks of a run share. Lifetime: outlives them.
struct SharedRun {
  const plan::Program& program;
  const ExecuteOptions& options;
  const RunClock& clock;
  Fabric& fabric;
  Census& census;
};

/// One rank executing its role's list of ops.
///
/// The host goes through the list and puts each op on its lane, up to one that blocks the host; on
/// with the next when that is over. The first op of a lane starts when its values are ready; the op
/// behind it may start when it is over (a P2P op: when it has posted). While nothing may start the
/// rank waits for its mailbox.
///
/// Run() belongs to one thread; the rest is for after it. Cost: O(lanes) per op and completion.
class RankRun {
 public:
  enum class End : std::uint8_t { kDone, kStopped, kDeadlock, kTimedOut };

  RankRun(const SharedRun& run, base::Rank rank, Mailbox& mailbox);

  /// Executes the list to its end, or as far as it goes. Throws what contradicts the other ranks.
  End Run();

  bool done() const { return num_done_ == role_.ops.size(); }
  /// The first op in host order that isn't over and what it waits for. Needs !done().
  std::string Position() const;
  std::uint64_t num_done() const { return num_done_; }
  const std::vector<std::vector<std::uint32_t>>& ops_by_lane() const { return ops_by_lane_; }
  const std::vector<traces::Event>& events() const { return events_; }

 private:
  enum class State : std::uint8_t { kAhead, kOnLane, kStarting, kRunning, kDone };
  struct LaneState {
    std::deque<std::uint32_t> ops;  // issued; the first may be running
    bool busy = false;
  };
  struct OpState {
    State state = State::kAhead;
    std::uint16_t transfers_left = 0;
    std::int64_t issue_ps = 0;
  };

  void JoinAll();
  void Advance();
  void Issue();
  bool BlocksHost(const plan::Op& op) const;
  bool StartFirst(LaneState& lane);
  bool HasValues(const plan::Op& op) const;
  void Start(std::uint32_t index);
  void Meet(std::uint32_t index, Communicator& communicator);
  void Post(std::uint32_t index);
  void Handle(const Completion& completion);
  void EndTransfer(std::uint32_t at, std::int64_t start_ps);
  void EndOnLane(std::uint32_t index, std::int64_t start_ps, std::int64_t end_ps);
  void Finish(std::uint32_t index);
  std::string WhatItWaitsFor(std::uint32_t index) const;
  base::Bytes SizeOf(plan::SizeId size) const { return run_.program.Size(rank_, size); }

  SharedRun run_;
  base::Rank rank_;
  const plan::Role& role_;
  Mailbox& mailbox_;
  std::vector<Communicator*> collectives_;  // by Role::groups
  std::vector<Communicator*> computes_;     // likewise; null where no Compute op meets
  std::vector<Channel*> sends_;             // by Role::peers
  std::vector<Channel*> receives_;
  std::vector<LaneState> lanes_;
  std::vector<OpState> ops_;
  std::vector<std::uint32_t> op_of_transfer_;
  std::vector<bool> transfer_over_;
  std::vector<bool> is_ready_;  // by ValueId
  std::uint32_t next_to_issue_ = 0;
  std::optional<std::uint32_t> blocked_on_;  // the host waits for this op's end
  std::uint64_t num_done_ = 0;
  std::vector<std::vector<std::uint32_t>> ops_by_lane_;
  std::vector<traces::Event> events_;
};

}  // namespace isthmus::backend
