#include "plan/program/internal/rendezvous_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/program/print.h"

namespace isthmus::plan::internal {
namespace {

constexpr std::size_t kMostProblems = 10;

/// Names a communicator the same on all its members: by kind, place and first member.
std::vector<std::int32_t> KeyOf(const GroupRef& group, const std::vector<base::Rank>& members,
                                bool compute) {
  std::vector<std::int32_t> key{static_cast<std::int32_t>(group.kind),
                                group.module,
                                group.axes.bits(),
                                group.edge,
                                compute ? 1 : 0,
                                static_cast<std::int32_t>(members.size())};
  if (group.kind != GroupRef::Kind::kWorld) {
    // Boundary groups are lists; two of an edge may share a first member.
    if (group.kind == GroupRef::Kind::kBoundary) {
      for (const base::Rank member : members) key.push_back(member.value());
    } else {
      key.push_back(members.front().value());
    }
  }
  return key;
}

}  // namespace

RendezvousRun::RendezvousRun(const Program& program, std::vector<std::string>& problems)
    : program_(program), problems_(problems) {
  for (const Role& role : program.roles) graphs_.push_back(GraphOf(role));
  for (int index = 0; index < program.num_ranks; ++index) {
    const RoleGraph& here = graph(base::Rank{index});
    RankState& state = ranks_.emplace_back();
    state.pending = here.prerequisites;
    state.transfers.assign(here.prerequisites.size(), 0);
  }
}

RendezvousRun::RoleGraph RendezvousRun::GraphOf(const Role& role) {
  RoleGraph graph;
  graph.prerequisites.assign(role.ops.size(), 0);
  graph.after_op.resize(role.ops.size());
  graph.after_post.resize(role.ops.size());
  graph.after_transfer.resize(role.transfers.size());
  graph.op_of_transfer.resize(role.transfers.size());
  std::vector<std::uint32_t> producer_op(role.values.size(), kNone32);
  std::vector<std::uint32_t> producer_transfer(role.values.size(), kNone32);
  std::vector<std::uint32_t> last_on_lane(role.lanes.size(), kNone32);
  std::uint32_t blocking = kNone32;
  for (std::uint32_t index = 0; index < role.ops.size(); ++index) {
    const Op& op = role.ops[index];
    const auto wait_for = [&](std::vector<std::uint32_t>& list) {
      if (!list.empty() && list.back() == index) return;
      list.push_back(index);
      ++graph.prerequisites[index];
    };
    for (const ValueId value : role.consumed_by(op)) {
      if (producer_transfer[value] != kNone32) {
        wait_for(graph.after_transfer[producer_transfer[value]]);
      } else if (producer_op[value] != kNone32) {
        wait_for(graph.after_op[producer_op[value]]);
      }
    }
    if (blocking != kNone32) wait_for(graph.after_op[blocking]);
    const std::uint32_t before = last_on_lane[op.lane];
    if (before != kNone32) {
      wait_for(role.ops[before].kind == OpKind::kP2P ? graph.after_post[before]
                                                     : graph.after_op[before]);
    }
    last_on_lane[op.lane] = index;
    if ((op.flags & kBlocksHost) != 0) blocking = index;
    for (const ValueId value : role.produced_by(op)) producer_op[value] = index;
    for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
      graph.op_of_transfer[at] = index;
      if (!role.transfers[at].sends) producer_transfer[role.transfers[at].value] = at;
    }
  }
  return graph;
}

void RendezvousRun::Run() {
  for (int index = 0; index < program_.num_ranks; ++index) {
    const RankState& state = ranks_[static_cast<std::size_t>(index)];
    for (std::uint32_t op = 0; op < state.pending.size(); ++op) {
      if (state.pending[op] == 0) ready_.emplace_back(base::Rank{index}, op);
    }
  }
  while (!ready_.empty()) {
    const auto [rank, op] = ready_.front();
    ready_.pop_front();
    OnReady(rank, op);
  }
  ReportBlocked();
}

void RendezvousRun::OnReady(base::Rank rank, std::uint32_t op) {
  const Op& what = program_.role(rank).ops[op];
  if (what.kind == OpKind::kP2P) {
    Post(rank, op);
  } else if (what.group != kNone32) {
    Arrive(rank, op);
  } else {
    Complete(rank, op);
  }
}

void RendezvousRun::Arrive(base::Rank rank, std::uint32_t op) {
  const Op& what = program_.role(rank).ops[op];
  const std::vector<base::Rank> members =
      program_.Members(rank, program_.role(rank).groups[what.group]);
  const auto key =
      KeyOf(program_.role(rank).groups[what.group], members, what.kind == OpKind::kCompute);
  std::vector<Arrival>& meeting = meetings_[key];
  if (!meeting.empty() && what.kind == OpKind::kCollective) {
    const Arrival& first = meeting.front();
    const Op& other = program_.role(first.rank).ops[first.op];
    const bool same = other.detail == what.detail &&
                      program_.Size(first.rank, other.size) == program_.Size(rank, what.size);
    if (!same)
      Report(fmt::format("{} meets {} of another kind or size", Name(rank, op),
                         Name(first.rank, first.op)));
  }
  meeting.push_back({rank, op});
  if (meeting.size() < members.size()) return;
  const std::vector<Arrival> complete = std::move(meeting);
  meetings_.erase(key);
  for (const Arrival& arrival : complete) Complete(arrival.rank, arrival.op);
}

void RendezvousRun::Post(base::Rank rank, std::uint32_t op) {
  const Op& what = program_.role(rank).ops[op];
  Release(rank, graph(rank).after_post[op]);
  std::vector<std::uint32_t> posted;
  for (std::uint32_t at = what.first_transfer; at < what.first_transfer + what.num_transfers;
       ++at) {
    if (program_.Size(rank, program_.role(rank).transfers[at].size).value() == 0) {
      Release(rank, graph(rank).after_transfer[at]);
    } else {
      posted.push_back(at);
    }
  }
  ranks_[rank.index()].transfers[op] = static_cast<std::uint16_t>(posted.size());
  if (posted.empty()) {
    Complete(rank, op);
    return;
  }
  for (const std::uint32_t transfer : posted) PostTransfer(rank, transfer);
}

void RendezvousRun::PostTransfer(base::Rank rank, std::uint32_t transfer) {
  const Role& role = program_.role(rank);
  const Transfer& what = role.transfers[transfer];
  const base::Rank peer = program_.Peer(rank, role.peers[what.peer]);
  const std::int64_t bytes = program_.Size(rank, what.size).value();
  Channel& channel = what.sends ? channels_[{rank.value(), peer.value()}]
                                : channels_[{peer.value(), rank.value()}];
  std::deque<Posted>& theirs = what.sends ? channel.receives : channel.sends;
  if (theirs.empty()) {
    (what.sends ? channel.sends : channel.receives).push_back({transfer, bytes});
    return;
  }
  const Posted other = theirs.front();
  theirs.pop_front();
  if (other.bytes != bytes) {
    Report(fmt::format("{} moves {} bytes, its partner on rank {} {}",
                       Name(rank, graph(rank).op_of_transfer[transfer]), bytes, peer.value(),
                       other.bytes));
  }
  EndTransfer(rank, transfer);
  EndTransfer(peer, other.transfer);
}

void RendezvousRun::EndTransfer(base::Rank rank, std::uint32_t transfer) {
  Release(rank, graph(rank).after_transfer[transfer]);
  const std::uint32_t op = graph(rank).op_of_transfer[transfer];
  if (--ranks_[rank.index()].transfers[op] == 0) Complete(rank, op);
}

void RendezvousRun::Complete(base::Rank rank, std::uint32_t op) {
  ++ranks_[rank.index()].num_done;
  ranks_[rank.index()].pending[op] = 0xffffU;
  Release(rank, graph(rank).after_op[op]);
}

void RendezvousRun::Release(base::Rank rank, const std::vector<std::uint32_t>& ops) {
  std::vector<std::uint16_t>& pending = ranks_[rank.index()].pending;
  for (const std::uint32_t op : ops) {
    if (--pending[op] == 0) ready_.emplace_back(rank, op);
  }
}

void RendezvousRun::Report(const std::string& text) {
  if (problems_.size() < kMostProblems) problems_.push_back(text);
}

std::string RendezvousRun::Name(base::Rank rank, std::uint32_t op) const {
  const Role& role = program_.role(rank);
  return fmt::format("rank {} op {} ({})", rank.value(), op,
                     Describe(program_, role, role.ops[op]));
}

void RendezvousRun::ReportBlocked() {
  for (int index = 0; index < program_.num_ranks; ++index) {
    const base::Rank rank{index};
    const RankState& state = ranks_[rank.index()];
    if (state.num_done == state.pending.size()) continue;
    for (std::uint32_t op = 0; op < state.pending.size(); ++op) {
      if (state.pending[op] == 0xffffU) continue;
      const Op& what = program_.role(rank).ops[op];
      const char* why = state.pending[op] > 0       ? "waits for values or its lane"
                        : what.kind == OpKind::kP2P ? "waits for its peers to post"
                        : what.group != kNone32     ? "waits for the other members of its group"
                                                    : "never runs";
      Report(fmt::format("deadlock: {} {}", Name(rank, op), why));
      break;
    }
  }
}

}  // namespace isthmus::plan::internal
