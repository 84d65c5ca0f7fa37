#include "plan/program/internal/rendezvous_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "plan/program/print.h"

namespace isthmus::plan::internal {
namespace {

constexpr std::size_t kMostProblems = 10;

}  // namespace

RendezvousRun::RendezvousRun(const Program& program, const Communicators& communicators,
                             IssueOrder order)
    : program_(program),
      communicators_(communicators),
      meetings_(std::size_t{2} * communicators.count()) {
  for (const Role& role : program.roles) graphs_.emplace_back(role, order);
  ranks_.resize(static_cast<std::size_t>(program.num_ranks));
  for (std::size_t index = 0; index < ranks_.size(); ++index) {
    ranks_[index].pending = graph(base::Rank{index}).prerequisites();
    ranks_[index].transfers.assign(ranks_[index].pending.size(), 0);
  }
  MakeChannels();
}

void RendezvousRun::MakeChannels() {
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> known;  // (from, to)
  const auto channel = [&](base::Rank from, base::Rank to) {
    const auto next = static_cast<std::uint32_t>(known.size());
    return known.try_emplace({from.value(), to.value()}, next).first->second;
  };
  for (std::size_t index = 0; index < ranks_.size(); ++index) {
    const base::Rank rank{index};
    ranks_[index].first_peer = channels_of_peer_.size();
    for (const PeerRef& peer : program_.role(rank).peers) {
      const base::Rank other = program_.Peer(rank, peer);
      channels_of_peer_.push_back({.to = channel(rank, other), .from = channel(other, rank)});
    }
  }
  channels_.resize(known.size());
}

std::vector<std::string> RendezvousRun::Run() {
  for (std::size_t index = ranks_.size(); index-- > 0;) {
    const RankState& state = ranks_[index];
    for (auto op = static_cast<std::uint32_t>(state.pending.size()); op-- > 0;) {
      if (state.pending[op] == 0) ready_.push_back({base::Rank{index}, op});
    }
  }
  while (!ready_.empty()) {
    const Place place = ready_.back();
    ready_.pop_back();
    OnReady(place);
  }
  ReportBlocked();
  return std::move(problems_);
}

void RendezvousRun::OnReady(const Place& place) {
  const Op& op = op_at(place);
  if (op.kind == OpKind::kP2P) {
    Post(place);
  } else if (op.group != kNone32) {
    Arrive(place);
  } else {
    Complete(place);
  }
}

bool RendezvousRun::IsSameCall(const Place& a, const Place& b) const {
  const Op& one = op_at(a);
  const Op& other = op_at(b);
  // On a boundary the block counts the rank's steps, of which leaders have more than the others.
  const bool same_block = one.block == other.block || one.purpose == Purpose::kBoundary;
  const bool same_op = one.detail == other.detail && one.purpose == other.purpose &&
                       one.module == other.module && one.microbatch == other.microbatch &&
                       one.chunk == other.chunk && one.step == other.step && same_block;
  if (!same_op || one.kind != OpKind::kCollective) return same_op;
  return program_.Size(a.rank, one.size) == program_.Size(b.rank, other.size);
}

void RendezvousRun::Arrive(const Place& place) {
  const Op& op = op_at(place);
  if (op.kind == OpKind::kCollective && program_.Size(place.rank, op.size).value() == 0) {
    Complete(place);
    return;
  }
  const std::uint32_t id = communicators_.id(place.rank, op.group);
  std::vector<Place>& meeting =
      meetings_[std::size_t{2} * id + (op.kind == OpKind::kCompute ? 1U : 0U)];
  if (!meeting.empty() && !IsSameCall(meeting.front(), place)) {
    Report(fmt::format("{} meets {}: another op or size", Name(place), Name(meeting.front())));
  }
  meeting.push_back(place);
  if (meeting.size() < communicators_.size(id)) return;
  // Completing may make members come again, so the meeting is over first.
  const std::vector<Place> complete = std::move(meeting);
  meeting.clear();
  for (const Place& member : complete) Complete(member);
}

void RendezvousRun::Post(const Place& place) {
  const Op& op = op_at(place);
  const OrderGraph& order = graph(place.rank);
  Release(place.rank, order.after_post(place.op));
  const std::uint32_t end = op.first_transfer + op.num_transfers;
  std::uint16_t posted = 0;
  for (std::uint32_t at = op.first_transfer; at < end; ++at) {
    if (SizeOf(place.rank, at) == 0) {
      Release(place.rank, order.after_transfer(at));
    } else {
      ++posted;
    }
  }
  ranks_[place.rank.index()].transfers[place.op] = posted;
  if (posted == 0) {
    Complete(place);
    return;
  }
  for (std::uint32_t at = op.first_transfer; at < end; ++at) {
    if (SizeOf(place.rank, at) > 0) PostTransfer(place.rank, at);
  }
}

void RendezvousRun::PostTransfer(base::Rank rank, std::uint32_t transfer) {
  const Transfer& what = program_.role(rank).transfers[transfer];
  const PeerChannels& peer = channels_of_peer_[ranks_[rank.index()].first_peer + what.peer];
  Channel& channel = channels_[what.sends ? peer.to : peer.from];
  if (channel.next == channel.waiting.size()) {
    channel.waiting.clear();
    channel.next = 0;
    channel.sends_wait = what.sends;
  }
  if (channel.waiting.empty() || channel.sends_wait == what.sends) {
    channel.waiting.push_back({rank, transfer});
    return;
  }
  const Posted other = channel.waiting[channel.next++];
  const std::int64_t ours = SizeOf(rank, transfer);
  const std::int64_t theirs = SizeOf(other.rank, other.transfer);
  if (ours != theirs) {
    Report(fmt::format(
        "{} moves {} bytes, its partner {} {}", Name({rank, graph(rank).op_of_transfer(transfer)}),
        ours, Name({other.rank, graph(other.rank).op_of_transfer(other.transfer)}), theirs));
  }
  EndTransfer(rank, transfer);
  EndTransfer(other.rank, other.transfer);
}

void RendezvousRun::EndTransfer(base::Rank rank, std::uint32_t transfer) {
  Release(rank, graph(rank).after_transfer(transfer));
  const std::uint32_t op = graph(rank).op_of_transfer(transfer);
  if (--ranks_[rank.index()].transfers[op] == 0) Complete({rank, op});
}

void RendezvousRun::Complete(const Place& place) {
  RankState& state = ranks_[place.rank.index()];
  ++state.num_done;
  state.pending[place.op] = kDone;
  Release(place.rank, graph(place.rank).after_op(place.op));
}

void RendezvousRun::Release(base::Rank rank, std::span<const std::uint32_t> ops) {
  std::vector<std::uint16_t>& pending = ranks_[rank.index()].pending;
  for (const std::uint32_t op : ops) {
    if (--pending[op] == 0) ready_.push_back({rank, op});
  }
}

void RendezvousRun::Report(const std::string& text) {
  if (problems_.size() < kMostProblems) problems_.push_back(text);
}

std::string RendezvousRun::Name(const Place& place) const {
  return fmt::format("rank {} op {} ({})", place.rank.value(), place.op,
                     Describe(program_, program_.role(place.rank), op_at(place)));
}

void RendezvousRun::ReportBlocked() {
  // Ranks that wait in the same way are one line: whoever keeps them waiting shows as another.
  std::vector<std::pair<std::string, Place>> waits;
  std::map<std::string, int> ranks_of_wait;
  for (std::size_t index = 0; index < ranks_.size(); ++index) {
    const RankState& state = ranks_[index];
    if (state.num_done == state.pending.size()) continue;
    // The first op that could go on but for other ranks says most.
    const auto blocked = std::find(state.pending.begin(), state.pending.end(), 0);
    const Place place{base::Rank{index},
                      static_cast<std::uint32_t>(blocked - state.pending.begin())};
    std::string wait = Describe(program_, program_.role(place.rank), op_at(place));
    if (++ranks_of_wait[wait] == 1) waits.emplace_back(std::move(wait), place);
  }
  for (const auto& [wait, place] : waits) {
    const bool p2p = op_at(place).kind == OpKind::kP2P;
    const int others = ranks_of_wait[wait] - 1;
    Report(fmt::format("deadlock: {} waits for {}{}", Name(place),
                       p2p ? "its peers to post" : "the other members of its group",
                       others == 0 ? "" : fmt::format(", {} more ranks likewise", others)));
  }
}

}  // namespace isthmus::plan::internal
