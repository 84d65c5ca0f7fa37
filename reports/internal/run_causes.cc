// What things waited for: the lookups of RunRecord.

#include <algorithm>
#include <iterator>
#include <utility>

#include "reports/internal/run_record.h"

namespace isthmus::reports {
namespace {

void KeepLater(Cause& best, const Cause& candidate) {
  if (candidate.found && (!best.found || candidate.ready > best.ready)) best = candidate;
}

}  // namespace

const RunRecord::Channel* RunRecord::FindChannel(std::uint32_t rank_class, std::uint32_t peer,
                                                 bool sends) const {
  if (rank_class >= channels_.size()) return nullptr;
  for (const Channel& channel : channels_[rank_class]) {
    if (channel.peer_class == peer && channel.sends == sends) return &channel;
  }
  return nullptr;
}

Cause RunRecord::OtherSide(const SpanRef& transfer) const {
  const RoleFacts& role = role_of(transfer.rank_class);
  const auto& record = role.transfers_of(role.ops[transfer.op])[transfer.transfer - 1];
  const auto& peers = classes_[transfer.rank_class].peers;
  if (record.peer >= peers.size()) return {};
  const std::uint32_t peer = peers[record.peer];
  const Channel* mine = FindChannel(transfer.rank_class, peer, record.sends);
  const Channel* theirs = FindChannel(peer, transfer.rank_class, !record.sends);
  if (mine == nullptr || theirs == nullptr) return {};
  const auto found = std::lower_bound(mine->transfers.begin(), mine->transfers.end(),
                                      TransferKey(transfer.op, transfer.transfer));
  const auto position = static_cast<std::size_t>(found - mine->transfers.begin());
  const std::uint64_t other =
      theirs->transfers[position * theirs->transfers.size() / mine->transfers.size()];
  Cause cause{.ref = {peer, static_cast<std::uint32_t>(other >> 32U),
                      static_cast<std::uint32_t>(other & 0xffffffffU)},
              .found = true};
  cause.ready = span(cause.ref).issue;
  return cause;
}

std::span<const std::uint32_t> RunRecord::OpsOn(std::uint32_t rank_class,
                                                std::uint32_t communicator, bool compute,
                                                std::vector<std::uint32_t>& merged) const {
  const RoleFacts& role = role_of(rank_class);
  const auto& groups = classes_[rank_class].groups;
  const std::size_t num_groups = std::min(groups.size(), role.ops_of_group.size() / 2);
  std::span<const std::uint32_t> ops;
  for (std::size_t group = 0; group < num_groups; ++group) {
    const auto& more = role.ops_of_group[2 * group + (compute ? 1 : 0)];
    if (groups[group] != communicator || more.empty()) continue;
    if (ops.empty()) {
      ops = more;
      continue;
    }
    // Two names of one communicator: its order is the host's.
    std::vector<std::uint32_t> both;
    std::merge(ops.begin(), ops.end(), more.begin(), more.end(), std::back_inserter(both));
    merged = std::move(both);
    ops = merged;
  }
  return ops;
}

Cause RunRecord::LastArrival(const SpanRef& ref) const {
  Cause last{.ref = ref, .ready = span(ref).issue, .found = true};
  const std::uint32_t local = op(ref).group;
  const auto& groups = classes_[ref.rank_class].groups;
  if (local == 0 || local > groups.size() || groups[local - 1] >= groups_.size()) return last;
  const std::uint32_t communicator = groups[local - 1];
  const bool compute = op(ref).kind == OpClass::kCompute;
  std::vector<std::uint32_t> merged;
  const auto mine = OpsOn(ref.rank_class, communicator, compute, merged);
  const auto position =
      static_cast<std::size_t>(std::lower_bound(mine.begin(), mine.end(), ref.op) - mine.begin());
  for (const std::uint32_t member : groups_[communicator]) {
    if (member == ref.rank_class || member >= classes_.size()) continue;
    const auto theirs = OpsOn(member, communicator, compute, merged);
    if (position >= theirs.size()) continue;
    const SpanRef other{member, theirs[position], 0};
    if (!span(other).recorded()) continue;
    KeepLater(last, {.ref = other, .ready = span(other).issue, .found = true});
  }
  return last;
}

Cause RunRecord::Freed(const SpanRef& ref) const {
  const Span& own = span(ref);
  if (op(ref).kind != OpClass::kP2P) return {ref, own.end, own.recorded()};
  // A P2P op frees its lane when it is posted.
  if (own.recorded()) return {ref, own.start, true};
  Cause posted;
  for (std::uint32_t transfer = 1; transfer <= op(ref).num_transfers; ++transfer) {
    const Span& sent = span({ref.rank_class, ref.op, transfer});
    if (sent.recorded() && (!posted.found || sent.issue < posted.ready)) {
      posted = {ref, sent.issue, true};
    }
  }
  return posted;
}

Cause RunRecord::Ready(std::uint32_t rank_class, const traces::Dependency& dependency) const {
  const SpanRef producer{rank_class, dependency.op, 0};
  const OpFacts& facts = op(producer);
  Cause best;
  if (facts.kind == OpClass::kP2P) {
    const std::uint32_t first = dependency.transfer > 0 ? dependency.transfer : 1;
    const std::uint32_t last =
        dependency.transfer > 0 ? dependency.transfer : std::uint32_t{facts.num_transfers};
    for (std::uint32_t transfer = first; transfer <= last; ++transfer) {
      if (transfer > facts.num_transfers) break;
      const SpanRef ref{rank_class, dependency.op, transfer};
      KeepLater(best, {ref, span(ref).end, span(ref).recorded()});
    }
  }
  // A skipped transfer is ready as soon as its op is posted.
  return best.found ? best : Freed(producer);
}

Cause RunRecord::BindingCause(const SpanRef& ref) const {
  const RoleFacts& role = role_of(ref.rank_class);
  const OpFacts& facts = role.ops[ref.op];
  Cause best;
  for (const traces::Dependency& dependency : role.dependencies_of(facts)) {
    KeepLater(best, Ready(ref.rank_class, dependency));
  }
  std::uint32_t before = facts.lane_predecessor;
  while (before > 0) {
    const Cause freed = Freed({ref.rank_class, before - 1, 0});
    KeepLater(best, freed);
    if (freed.found) break;  // else it never ran: look at the one before it
    before = role.ops[before - 1].lane_predecessor;
  }
  return best;
}

Cause RunRecord::LastEnd(std::uint32_t rank_class) const {
  const RoleFacts& role = role_of(rank_class);
  Cause last;
  for (std::uint32_t op_index = 0; op_index < role.ops.size(); ++op_index) {
    for (std::uint32_t transfer = 0; transfer <= role.ops[op_index].num_transfers; ++transfer) {
      const SpanRef ref{rank_class, op_index, transfer};
      KeepLater(last, {ref, span(ref).end, span(ref).recorded()});
    }
  }
  return last;
}

}  // namespace isthmus::reports
