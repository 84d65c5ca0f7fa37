#include "reports/internal/run_record.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "base/error.h"
#include "reports/internal/edge_of_op.h"

namespace isthmus::reports {
namespace {

OpClass ClassOf(const std::string& kind) {
  if (kind == "collective") return OpClass::kCollective;
  if (kind == "p2p") return OpClass::kP2P;
  if (kind == "copy") return OpClass::kCopy;
  return OpClass::kCompute;
}

template <typename Item>
std::uint32_t Count(const std::vector<Item>& items) {
  return static_cast<std::uint32_t>(items.size());
}

void KeepLater(Cause& best, const Cause& candidate) {
  if (candidate.found && (!best.found || candidate.ready > best.ready)) best = candidate;
}

std::uint64_t TransferKey(std::uint32_t op, std::uint32_t index) {
  return std::uint64_t{op} << 32U | index;
}

}  // namespace

RunRecord::RunRecord(const traces::Header& header) : groups_(header.groups) {
  roles_.reserve(header.roles.size());
  for (const traces::RoleRecord& record : header.roles) AddRole(record, header);
  std::size_t num_spans = 0;
  for (const traces::RankClass& source : header.classes) {
    if (source.role >= roles_.size()) {
      throw base::Error(fmt::format("trace: rank class {} has role {}, but there are {} roles",
                                    classes_.size(), source.role, roles_.size()));
    }
    traces::RankClass& copy = classes_.emplace_back();
    copy.representative = source.representative;
    copy.count = source.count;
    copy.role = source.role;
    copy.groups = source.groups;
    copy.peers = source.peers;
    first_span_.push_back(num_spans);
    num_spans += roles_[source.role].num_slots;
  }
  spans_.resize(num_spans);
  waits_.resize(classes_.size());
  channels_.resize(classes_.size());
}

void RunRecord::AddRole(const traces::RoleRecord& record, const traces::Header& header) {
  RoleFacts& role = roles_.emplace_back();
  role.name = record.name;
  role.ops.reserve(record.ops.size());
  role.ops_of_group.resize(record.groups.size());
  std::vector<std::uint32_t> last_on_lane(record.lanes.size(), 0);
  for (const traces::OpRecord& source : record.ops) {
    const std::uint32_t index = Count(role.ops);
    if (source.lane >= record.lanes.size() || source.group > record.groups.size()) {
      throw base::Error(
          fmt::format("trace: op {} of role '{}' names a lane or a group that the "
                      "role does not have",
                      index, record.name));
    }
    AddOp(source, role);
    OpFacts& op = role.ops.back();
    op.on_compute_lane = record.lanes[source.lane].kind == "compute";
    op.edge = EdgeOfOp(source, record, header);
    op.lane_predecessor = last_on_lane[source.lane];
    last_on_lane[source.lane] = index + 1;
    if (op.on_compute_lane) role.compute_ops.push_back(index);
    if (op.kind == OpClass::kP2P) role.p2p_ops.push_back(index);
    if (op.group > 0) role.ops_of_group[op.group - 1].push_back(index);
  }
}

void RunRecord::AddOp(const traces::OpRecord& source, RoleFacts& role) {
  const std::uint32_t index = Count(role.ops);
  OpFacts& op = role.ops.emplace_back();
  op.kind = ClassOf(source.kind);
  op.category = source.category;
  op.module = source.module;
  op.microbatch = source.microbatch;
  op.name = Intern(source.name);
  op.group = source.group;
  op.slot = role.num_slots;
  op.first_dependency = Count(role.dependencies);
  for (const traces::Dependency& dependency : source.dependencies) {
    if (dependency.op < index) role.dependencies.push_back(dependency);
  }
  op.num_dependencies = static_cast<std::uint16_t>(role.dependencies.size() - op.first_dependency);
  op.first_transfer = Count(role.transfers);
  op.num_transfers = static_cast<std::uint16_t>(source.transfers.size());
  role.transfers.insert(role.transfers.end(), source.transfers.begin(), source.transfers.end());
  op.first_share = Count(role.shares);
  op.num_shares = static_cast<std::uint16_t>(source.inner_shares.size());
  role.shares.insert(role.shares.end(), source.inner_shares.begin(), source.inner_shares.end());
  role.num_slots += 1U + op.num_transfers;
}

std::uint32_t RunRecord::Intern(const std::string& name) {
  // Ops repeat a handful of names, mostly the last few seen.
  const auto found = std::find(names_.rbegin(), names_.rend(), name);
  if (found != names_.rend()) return static_cast<std::uint32_t>(names_.rend() - found - 1);
  names_.push_back(name);
  return Count(names_) - 1;
}

void RunRecord::Add(const traces::Event& event) {
  if (event.rank_class >= classes_.size() || event.op >= role_of(event.rank_class).ops.size()) {
    throw base::Error(
        fmt::format("trace: an event names op {} of rank class {}, which its header "
                    "does not have",
                    event.op, event.rank_class));
  }
  const OpFacts& facts = role_of(event.rank_class).ops[event.op];
  if (event.inner > facts.num_transfers) {
    // Pieces of an expanded block: the op's own interval covers them.
    if (facts.kind != OpClass::kP2P) return;
    throw base::Error(
        fmt::format("trace: an event names transfer {} of op {} of rank class {}, "
                    "which has {}",
                    event.inner - 1, event.op, event.rank_class, facts.num_transfers));
  }
  spans_[first_span_[event.rank_class] + facts.slot + event.inner] = {
      .issue = std::min(event.issue_ps, event.start_ps),
      .start = event.start_ps,
      .end = std::max(event.start_ps, event.end_ps)};
}

void RunRecord::Finish(const traces::Trailer& trailer) {
  for (const traces::ImposedWait& wait : trailer.waits) {
    if (wait.rank_class >= classes_.size()) {
      throw base::Error(
          fmt::format("trace: a wait names rank class {}, which its header does not "
                      "have",
                      wait.rank_class));
    }
    if (wait.end_ps > wait.start_ps) waits_[wait.rank_class].push_back(wait);
  }
  for (auto& waits : waits_) {
    std::stable_sort(waits.begin(), waits.end(), [](const auto& left, const auto& right) {
      return left.start_ps < right.start_ps;
    });
  }
  for (std::uint32_t index = 0; index < num_classes(); ++index) BuildChannels(index);
}

void RunRecord::BuildChannels(std::uint32_t rank_class) {
  const RoleFacts& role = role_of(rank_class);
  const std::vector<std::uint32_t>& peers = classes_[rank_class].peers;
  std::vector<Channel>& channels = channels_[rank_class];
  for (const std::uint32_t op_index : role.p2p_ops) {
    std::uint32_t index = 0;
    for (const traces::TransferRecord& transfer : role.transfers_of(role.ops[op_index])) {
      const SpanRef ref{rank_class, op_index, ++index};
      if (transfer.peer >= peers.size() || !span(ref).recorded()) continue;
      const std::uint32_t peer = peers[transfer.peer];
      auto channel = std::find_if(channels.begin(), channels.end(), [&](const Channel& known) {
        return known.peer_class == peer && known.sends == transfer.sends;
      });
      if (channel == channels.end()) {
        channel = channels.insert(channels.end(), Channel{peer, transfer.sends, {}});
      }
      channel->transfers.push_back(TransferKey(op_index, index));
    }
  }
}

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
                                                std::uint32_t communicator,
                                                std::vector<std::uint32_t>& merged) const {
  const RoleFacts& role = role_of(rank_class);
  const auto& groups = classes_[rank_class].groups;
  const std::size_t num_groups = std::min(groups.size(), role.ops_of_group.size());
  std::span<const std::uint32_t> ops;
  for (std::size_t group = 0; group < num_groups; ++group) {
    const auto& more = role.ops_of_group[group];
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
  std::vector<std::uint32_t> merged;
  const auto mine = OpsOn(ref.rank_class, communicator, merged);
  const auto position =
      static_cast<std::size_t>(std::lower_bound(mine.begin(), mine.end(), ref.op) - mine.begin());
  for (const std::uint32_t member : groups_[communicator]) {
    if (member == ref.rank_class || member >= classes_.size()) continue;
    const auto theirs = OpsOn(member, communicator, merged);
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
