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

// Where RoleFacts::ops_of_group lists an op.
std::size_t GroupList(const OpFacts& op) {
  return 2 * (op.group - std::size_t{1}) + (op.kind == OpClass::kCompute ? 1 : 0);
}

}  // namespace

RunRecord::RunRecord(const traces::Header& header)
    : groups_(header.groups), num_modules_(header.modules.size()) {
  for (const traces::ModuleRecord& module : header.modules) {
    for (const traces::ModuleRecord& other : header.modules) {
      edges_.push_back(EdgeBetweenNames(module.name, other.name, header));
    }
  }
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
  slowdowns_.resize(classes_.size());
  channels_.resize(classes_.size());
}

void RunRecord::AddRole(const traces::RoleRecord& record, const traces::Header& header) {
  RoleFacts& role = roles_.emplace_back();
  role.name = record.name;
  role.ops.reserve(record.ops.size());
  role.ops_of_group.resize(2 * record.groups.size());
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
    if (op.group > 0) role.ops_of_group[GroupList(op)].push_back(index);
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

std::uint16_t RunRecord::EdgeBetween(std::uint16_t module, std::uint16_t other) const {
  if (module >= num_modules_ || other >= num_modules_) return 0;
  return edges_[module * num_modules_ + other];
}

std::uint32_t RunRecord::Intern(const std::string& name) {
  const auto [entry, is_new] = number_of_name_.try_emplace(name, Count(names_));
  if (is_new) names_.push_back(&entry->first);
  return entry->second;
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
  TakeSlowdowns(trailer);
  for (std::uint32_t index = 0; index < num_classes(); ++index) BuildChannels(index);
}

void RunRecord::TakeSlowdowns(const traces::Trailer& trailer) {
  for (const traces::Slowdown& slowdown : trailer.slowdowns) {
    if (slowdown.rank_class >= classes_.size() ||
        slowdown.op >= role_of(slowdown.rank_class).ops.size()) {
      throw base::Error(
          fmt::format("trace: a slowdown names op {} of rank class {}, which its header does not "
                      "have",
                      slowdown.op, slowdown.rank_class));
    }
    slowdowns_[slowdown.rank_class].emplace_back(slowdown.op, slowdown.duration_ps);
  }
  for (auto& slowdowns : slowdowns_) std::sort(slowdowns.begin(), slowdowns.end());
}

std::int64_t RunRecord::slowdown(const SpanRef& ref) const {
  const auto& slowdowns = slowdowns_[ref.rank_class];
  const auto found = std::lower_bound(slowdowns.begin(), slowdowns.end(),
                                      std::pair<std::uint32_t, std::int64_t>(ref.op, 0));
  const bool is_op = ref.transfer == 0 && found != slowdowns.end() && found->first == ref.op;
  return is_op ? found->second : 0;
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

}  // namespace isthmus::reports
