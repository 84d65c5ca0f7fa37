#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan::internal {

/// Executes a program on all its ranks without times, under strict rendezvous: a transfer is over
/// only when both sides have posted it, a collective when all members have come.
///
/// The program is a fixed order of events on every lane and every pair of ranks, so whether it ends
/// does not depend on times: one run is the proof. Along the way every transfer must meet one of
/// equal size, and members of a communicator must come with the same kind and size.
/// Cost: O(ops of all ranks); problems beyond the tenth are left out.
class RendezvousRun {
 public:
  RendezvousRun(const Program& program, std::vector<std::string>& problems);
  void Run();

 private:
  struct RankState {
    std::vector<std::uint16_t> pending;    // by op: what it waits for
    std::vector<std::uint16_t> transfers;  // by op: transfers left, once posted
    std::uint32_t num_done = 0;
  };
  /// Who waits for whom inside a role; shared by its ranks.
  struct RoleGraph {
    std::vector<std::uint16_t> prerequisites;
    std::vector<std::vector<std::uint32_t>> after_op;
    std::vector<std::vector<std::uint32_t>> after_post;
    std::vector<std::vector<std::uint32_t>> after_transfer;
    std::vector<std::uint32_t> op_of_transfer;
  };
  /// A message that one side has posted.
  struct Posted {
    std::uint32_t transfer = 0;
    std::int64_t bytes = 0;
  };
  struct Channel {
    std::deque<Posted> sends;  // posted by the lower side of the key's direction
    std::deque<Posted> receives;
  };
  struct Arrival {
    base::Rank rank;
    std::uint32_t op = 0;
  };

  static RoleGraph GraphOf(const Role& role);
  void OnReady(base::Rank rank, std::uint32_t op);
  void Arrive(base::Rank rank, std::uint32_t op);
  void Post(base::Rank rank, std::uint32_t op);
  void PostTransfer(base::Rank rank, std::uint32_t transfer);
  void EndTransfer(base::Rank rank, std::uint32_t transfer);
  void Complete(base::Rank rank, std::uint32_t op);
  void Release(base::Rank rank, const std::vector<std::uint32_t>& ops);
  void Report(const std::string& text);
  void ReportBlocked();
  std::string Name(base::Rank rank, std::uint32_t op) const;
  const RoleGraph& graph(base::Rank rank) const {
    return graphs_[program_.role_of_rank[rank.index()]];
  }

  const Program& program_;
  std::vector<std::string>& problems_;
  std::vector<RoleGraph> graphs_;
  std::vector<RankState> ranks_;
  std::map<std::pair<int, int>, Channel> channels_;  // (from, to)
  std::map<std::vector<std::int32_t>, std::vector<Arrival>> meetings_;
  std::map<std::vector<std::int32_t>, std::vector<base::Rank>> members_;
  std::deque<std::pair<base::Rank, std::uint32_t>> ready_;
};

}  // namespace isthmus::plan::internal
