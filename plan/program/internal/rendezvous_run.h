#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/program/internal/communicators.h"
#include "plan/program/internal/order_graph.h"
#include "plan/program/program.h"

namespace isthmus::plan::internal {

/// Executes a program on all its ranks without times, under strict rendezvous: a transfer is over
/// only when both sides have posted it, a collective when all members have come.
///
/// The program is a fixed order of events on every lane and every pair of ranks, so whether it ends
/// does not depend on times: one run is the proof. Along the way every transfer must meet one of
/// equal size, and members of a communicator must come with the same op of the same size.
///
/// Lifetime: refers to the program and its communicators. Needs a program whose references hold.
/// Cost: O(ops of all ranks), about 50 ns an op; problems beyond the tenth are left out.
class RendezvousRun {
 public:
  RendezvousRun(const Program& program, const Communicators& communicators, IssueOrder order);

  /// Runs until nothing moves. Returns what is wrong, deadlocks last.
  std::vector<std::string> Run();

 private:
  struct Place {
    base::Rank rank;
    std::uint32_t op = 0;
  };
  struct RankState {
    std::vector<std::uint16_t> pending;    // by op: events it waits for; kDone
    std::vector<std::uint16_t> transfers;  // by op: transfers left, once posted
    std::size_t first_peer = 0;            // into channels_of_peer_
    std::uint32_t num_done = 0;
  };
  /// A message that one side has posted.
  struct Posted {
    base::Rank rank;
    std::uint32_t transfer = 0;
  };
  /// Messages from one rank to another. Only one side is ever ahead.
  struct Channel {
    std::vector<Posted> waiting;
    std::size_t next = 0;  // first of `waiting` that is not matched yet
    bool sends_wait = false;
  };
  struct PeerChannels {
    std::uint32_t to = 0;
    std::uint32_t from = 0;
  };
  static constexpr std::uint16_t kDone = 0xffffU;

  void MakeChannels();
  void OnReady(const Place& place);
  void Arrive(const Place& place);
  void Post(const Place& place);
  void PostTransfer(base::Rank rank, std::uint32_t transfer);
  void EndTransfer(base::Rank rank, std::uint32_t transfer);
  void Complete(const Place& place);
  void Release(base::Rank rank, std::span<const std::uint32_t> ops);
  bool IsSameCall(const Place& a, const Place& b) const;
  void Report(const std::string& text);
  void ReportBlocked();
  std::string Name(const Place& place) const;
  const OrderGraph& graph(base::Rank rank) const {
    return graphs_[program_.role_of_rank[rank.index()]];
  }
  const Op& op_at(const Place& place) const { return program_.role(place.rank).ops[place.op]; }
  std::int64_t SizeOf(base::Rank rank, std::uint32_t transfer) const {
    return program_.Size(rank, program_.role(rank).transfers[transfer].size).value();
  }

  const Program& program_;
  const Communicators& communicators_;
  std::vector<OrderGraph> graphs_;  // by role
  std::vector<RankState> ranks_;
  std::vector<PeerChannels> channels_of_peer_;  // by rank and index into Role::peers
  std::vector<Channel> channels_;
  /// Who has come, by communicator: to its collectives (even) and to its matched computes (odd).
  std::vector<std::vector<Place>> meetings_;
  std::vector<Place> ready_;
  std::vector<std::string> problems_;
};

}  // namespace isthmus::plan::internal
