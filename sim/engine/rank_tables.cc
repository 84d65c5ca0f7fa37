#include "sim/engine/rank_tables.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/sim_time.h"
#include "plan/program/producers.h"
#include "sim/engine/needed_by.h"

namespace isthmus::sim {
namespace {

constexpr plan::AxisSet kInnerAxes[] = {plan::kTp, plan::kCp, plan::kEp};

traces::Category WorkCategory(const plan::Op& op) {
  return op.kind == plan::OpKind::kOptimizer ? traces::Category::kOptimizer
                                             : traces::Category::kCompute;
}

}  // namespace

RankTables::RankTables(const plan::Program& program, const topology::Cluster& cluster,
                       const CostModels& models, Lowered& lowered)
    : program_(program),
      cluster_(cluster),
      models_(models),
      lowered_(lowered),
      costs_(*models.segments, models.op_issue, lowered.work_costs) {
  for (const plan::Role& role : program.roles)
    graphs_.push_back(std::make_shared<const OpGraph>(role, models.host_order));
  const auto num_ranks = static_cast<std::size_t>(program.num_ranks);
  groups_of_rank_.resize(num_ranks);
  peers_of_rank_.resize(num_ranks);
  matches_of_rank_.resize(num_ranks);
  locality_alone_.assign(num_ranks, plan::kNone32);
  for (std::size_t index = 0; index < num_ranks; ++index) FindGroups(base::Rank(index));
  for (std::size_t index = 0; index < num_ranks; ++index) FindVariant(base::Rank(index));
  for (std::size_t index = 0; index < num_ranks; ++index) FindPeers(base::Rank(index));
  for (std::size_t index = 0; index < num_ranks; ++index) MatchPeers(base::Rank(index));
}

std::uint32_t RankTables::FamilyOf(const plan::GroupRef& group) {
  const bool boundary = group.kind == plan::GroupRef::Kind::kBoundary;
  const std::tuple key{static_cast<int>(group.kind), boundary ? group.edge : group.module,
                       group.axes.bits()};
  return families_.try_emplace(key, static_cast<std::uint32_t>(families_.size())).first->second;
}

std::uint32_t RankTables::LocalityOf(std::span<const base::Rank> members) {
  return costs_.Intern(
      NeededBy([&] { return cluster_.Locality(members); }, [&] { return CollectivesOf(members); }));
}

std::uint32_t RankTables::AddGroup(std::vector<base::Rank> members, std::uint32_t family) {
  RankGroup& group = groups_.emplace_back();
  group.locality = LocalityOf(members);
  group.members = std::move(members);
  group.callers.reserve(group.members.size());
  group.family = family;
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

std::uint32_t RankTables::AxesGroup(base::Rank rank, std::uint16_t module, plan::AxisSet axes) {
  const plan::Grid& grid = program_.modules[module].grid;
  std::vector<std::uint32_t>& groups = axes_groups_[{module, axes.bits()}];
  if (groups.empty())
    groups.assign(static_cast<std::size_t>(grid.size(axes.Others())), plan::kNone32);
  std::uint32_t& group = groups[static_cast<std::size_t>(grid.GroupIndex(rank, axes))];
  if (group == plan::kNone32) {
    const plan::GroupRef ref{.kind = plan::GroupRef::Kind::kAxes, .module = module, .axes = axes};
    group = AddGroup(grid.Group(rank, axes), FamilyOf(ref));
  }
  return group;
}

void RankTables::FindGroups(base::Rank rank) {
  std::vector<std::uint32_t>& found = groups_of_rank_[rank.index()];
  found.reserve(program_.role(rank).groups.size());
  for (const plan::GroupRef& group : program_.role(rank).groups) {
    if (group.kind == plan::GroupRef::Kind::kAxes) {
      found.push_back(AxesGroup(rank, group.module, group.axes));
      continue;
    }
    const std::uint32_t family = FamilyOf(group);
    if (group.kind == plan::GroupRef::Kind::kWorld) {
      const auto [at, is_new] = listed_groups_.try_emplace({family, {}}, 0U);
      if (is_new) at->second = AddGroup(program_.Members(rank, group), family);
      found.push_back(at->second);
      continue;
    }
    std::vector<base::Rank> members = program_.Members(rank, group);
    const auto [at, is_new] = listed_groups_.try_emplace({family, members}, 0U);
    if (is_new) at->second = AddGroup(std::move(members), family);
    found.push_back(at->second);
  }
  for (std::uint32_t slot = 0; slot < found.size(); ++slot)
    groups_[found[slot]].callers.emplace_back(rank, slot);
}

// Most modules have an axis of size 1, and a group for every rank there would be most of all
// groups.
std::uint32_t RankTables::LocalityOver(base::Rank rank, std::uint16_t module, plan::AxisSet axes) {
  if (program_.modules[module].grid.size(axes) > 1)
    return groups_[AxesGroup(rank, module, axes)].locality;
  std::uint32_t& alone = locality_alone_[rank.index()];
  if (alone == plan::kNone32) alone = LocalityOf({&rank, 1});
  return alone;
}

InnerLocalities RankTables::PlacesOf(base::Rank rank, std::uint16_t module) {
  std::uint32_t places[3] = {};
  for (std::size_t axis = 0; axis < 3; ++axis)
    places[axis] = LocalityOver(rank, module, kInnerAxes[axis]);
  return {places[0], places[1], places[2]};
}

void RankTables::FindVariant(base::Rank rank) {
  const std::uint32_t role = program_.role_of_rank[rank.index()];
  const std::uint32_t table = program_.table_of_rank[rank.index()];
  const base::DeviceId gpu = cluster_.DeviceOf(rank);
  const std::vector<std::uint32_t>& groups = groups_of_rank_[rank.index()];
  const std::vector<plan::ModuleStage>& stages = program_.roles[role].stages;
  std::vector<std::uint64_t> key;
  key.reserve(3 + groups.size() + 3 * stages.size());
  key.assign({role, table, std::bit_cast<std::uint64_t>(cluster_.SpeedFactorOf(gpu))});
  for (const std::uint32_t group : groups) key.push_back(groups_[group].locality);
  for (const plan::ModuleStage& stage : stages) {
    const InnerLocalities places = PlacesOf(rank, stage.module);
    key.insert(key.end(), {places.tp, places.cp, places.ep});
  }
  const auto [at, is_new] =
      variants_.try_emplace(std::move(key), static_cast<std::uint32_t>(lowered_.variants.size()));
  if (is_new) {
    Variant& variant = lowered_.variants.emplace_back();
    variant.role = role;
    variant.table = table;
    variant.ops = &program_.roles[role];
    variant.sizes = &program_.tables[table];
    variant.graph = graphs_[role];
    for (const std::uint32_t group : groups)
      variant.meets.push_back(groups_[group].members.size() > 1);
    CostVariant(variant, rank);
    CountTransfers(variant);
  }
  variant_of_rank_.push_back(at->second);
}

void RankTables::CostVariant(Variant& variant, base::Rank rank) {
  for (const plan::Op& op : variant.ops->ops) {
    const WorkCost* work = nullptr;
    variant.duration_ps.push_back(CostOfOp(variant, rank, op, &work));
    variant.work.push_back(work);
    variant.core_ps.push_back(CoreTimeOfOp(variant, rank, op));
  }
  const plan::SizeTable& table = program_.tables[variant.table];
  base::Seconds issued(0);
  for (const plan::Op& op : variant.ops->ops) {
    const bool has_work = op.kind == plan::OpKind::kCompute || op.kind == plan::OpKind::kOptimizer;
    issued += models_.host.Issue(op, has_work ? &program_.works[table.works[op.size]] : nullptr);
    variant.issued_ps.push_back(base::ToPicoseconds(issued).value());
  }
  FindSync(variant);
}

void RankTables::FindSync(Variant& variant) {
  const plan::Role& role = *variant.ops;
  const std::vector<plan::Producer> producers = plan::ProducersOf(role);
  variant.sync_after_ps.assign(role.ops.size(), 0);
  for (std::uint32_t index = 0; index < role.ops.size(); ++index) {
    const plan::Op& op = role.ops[index];
    const bool syncs =
        op.kind == plan::OpKind::kCollective && (op.purpose == plan::Purpose::kGradientSync ||
                                                 op.purpose == plan::Purpose::kParameterGather);
    if (!syncs) continue;
    std::uint32_t last = plan::kNone32;  // what makes its data ready
    for (const plan::ValueId value : role.consumed_by(op)) {
      const std::uint32_t producer = producers[value].op;
      if (producer == plan::kNone32) continue;
      last = last == plan::kNone32 ? producer : std::max(last, producer);
    }
    std::int64_t& sync =
        last == plan::kNone32 ? variant.sync_at_start_ps : variant.sync_after_ps[last];
    sync = base::Later(sync, variant.duration_ps[index],
                       [&] { return fmt::format("op {} of role {}", index, role.name); });
  }
}

std::int64_t RankTables::CostOfOp(const Variant& variant, base::Rank rank, const plan::Op& op,
                                  const WorkCost** work) {
  const plan::SizeTable& table = program_.tables[variant.table];
  switch (op.kind) {
    case plan::OpKind::kCompute:
    case plan::OpKind::kOptimizer: {
      const std::uint32_t index = table.works[op.size];
      const double speed = cluster_.SpeedFactorOf(cluster_.DeviceOf(rank));
      *work = costs_.Cost(program_.works[index], index, PlacesOf(rank, op.module), WorkCategory(op),
                          speed);
      return (*work)->total_ps;
    }
    case plan::OpKind::kCollective: {
      if (variant.bytes_of(op) == 0) return 0;
      const RankGroup& group = groups_[groups_of_rank_[rank.index()][op.group]];
      return base::ToPicoseconds(models_.collectives->Time(op.collective(), table.bytes[op.size],
                                                           costs_.locality(group.locality)))
          .value();
    }
    case plan::OpKind::kCopy: {
      const base::DeviceId gpu = cluster_.DeviceOf(rank);
      const bool to_host = op.copy() == plan::CopyDirection::kToHost;
      const topology::Route route =
          to_host ? cluster_.RouteToHost(gpu) : cluster_.RouteFromHost(gpu);
      return base::ToPicoseconds(models_.collectives->Copy(table.bytes[op.size], op.copy(), route))
          .value();
    }
    case plan::OpKind::kP2P:
      return 0;
  }
  return 0;
}

std::int64_t RankTables::CoreTimeOfOp(const Variant& variant, base::Rank rank,
                                      const plan::Op& op) const {
  if (op.kind != plan::OpKind::kCollective || variant.bytes_of(op) == 0) return 0;
  const RankGroup& group = groups_[groups_of_rank_[rank.index()][op.group]];
  const base::Bytes bytes = program_.tables[variant.table].bytes[op.size];
  const base::Seconds time =
      models_.collectives->CoreTime(op.collective(), bytes, costs_.locality(group.locality));
  return base::ToPicoseconds(time).value();
}

void RankTables::CountTransfers(Variant& variant) const {
  const plan::SizeTable& table = program_.tables[variant.table];
  const plan::Role& role = *variant.ops;
  for (const plan::Transfer& transfer : role.transfers) {
    variant.transfer_bytes.push_back(table.bytes[transfer.size].value());
  }
  variant.posted_bytes.assign(role.transfers.size(), 0);
  for (const plan::Op& op : role.ops) {
    std::int64_t posted[2] = {0, 0};
    const std::uint32_t end = op.first_transfer + op.num_transfers;
    for (std::uint32_t at = op.first_transfer; at < end; ++at) {
      posted[role.transfers[at].sends ? 1 : 0] += variant.transfer_bytes[at];
    }
    for (std::uint32_t at = op.first_transfer; at < end; ++at) {
      variant.posted_bytes[at] = posted[role.transfers[at].sends ? 1 : 0];
    }
  }
}

void RankTables::FindPeers(base::Rank rank) {
  const plan::Role& role = program_.role(rank);
  peers_of_rank_[rank.index()].reserve(role.peers.size());
  for (const plan::PeerRef& peer : role.peers)
    peers_of_rank_[rank.index()].push_back(program_.Peer(rank, peer));
}

std::uint32_t RankTables::RouteClass(base::Rank from, base::Rank to) {
  const auto traits = cluster_.TraitsOfRoute(cluster_.DeviceOf(from), cluster_.DeviceOf(to));
  if (traits) {
    const auto [at, is_new] = route_of_traits_.try_emplace(*traits, 0U);
    if (is_new) at->second = ClassOfRoute(from, to);
    return at->second;
  }
  const std::uint64_t pair =
      static_cast<std::uint64_t>(from.index()) << 32U | static_cast<std::uint64_t>(to.index());
  const auto [at, is_new] = route_of_pair_.try_emplace(pair, 0U);
  if (is_new) at->second = ClassOfRoute(from, to);
  return at->second;
}

std::uint32_t RankTables::ClassOfRoute(base::Rank from, base::Rank to) {
  const topology::Route route = NeededBy(
      [&] { return cluster_.RouteBetween(cluster_.DeviceOf(from), cluster_.DeviceOf(to)); },
      [&] { return MessagesBetween(from, to); });
  const double bandwidth = route.Bandwidth() ? route.Bandwidth()->value() : 0.0;
  const auto [at, is_new] = route_classes_.try_emplace(
      {static_cast<int>(route.Kind()), bandwidth, route.Latency().value()},
      static_cast<std::uint32_t>(routes_.size()));
  if (is_new) routes_.push_back(route);
  return at->second;
}

void RankTables::MatchPeers(base::Rank rank) {
  const std::vector<base::Rank>& peers = peers_of_rank_[rank.index()];
  matches_of_rank_[rank.index()].reserve(peers.size());
  // Outside the loop for their memory: this is done for every pair of ranks.
  std::vector<std::uint32_t> to_them;
  std::vector<std::uint32_t> to_us;
  std::vector<std::uint32_t> key;
  for (const base::Rank peer : peers) {
    to_them.clear();
    to_us.clear();
    for (std::uint32_t slot = 0; slot < peers.size(); ++slot) {
      if (peers[slot] == peer) to_them.push_back(slot);
    }
    const std::vector<base::Rank>& theirs = peers_of_rank_[peer.index()];
    for (std::uint32_t slot = 0; slot < theirs.size(); ++slot) {
      if (theirs[slot] == rank) to_us.push_back(slot);
    }
    const std::uint32_t ours = variant_of_rank_[rank.index()];
    const std::uint32_t other = variant_of_rank_[peer.index()];
    const std::uint32_t route = RouteClass(rank, peer);
    key.assign({ours, other, route, static_cast<std::uint32_t>(to_them.size())});
    key.insert(key.end(), to_them.begin(), to_them.end());
    key.insert(key.end(), to_us.begin(), to_us.end());
    const auto [at, is_new] = matches_.try_emplace(key, nullptr);
    if (is_new) {
      lowered_.match_tables.push_back(Match(ours, other, to_them, to_us, route));
      at->second = lowered_.match_tables.back().get();
    }
    matches_of_rank_[rank.index()].push_back(at->second);
  }
}

std::unique_ptr<MatchTable> RankTables::Match(std::uint32_t ours, std::uint32_t theirs,
                                              const std::vector<std::uint32_t>& to_them,
                                              const std::vector<std::uint32_t>& to_us,
                                              std::uint32_t route) const {
  const Variant& a = lowered_.variants[ours];
  const Variant& b = lowered_.variants[theirs];
  const auto through = [](const std::vector<std::uint32_t>& slots, std::uint32_t peer) {
    return std::find(slots.begin(), slots.end(), peer) != slots.end();
  };
  // What they post, by direction, in order.
  std::vector<std::uint32_t> posted[2];
  for (std::uint32_t at = 0; at < b.ops->transfers.size(); ++at) {
    const plan::Transfer& transfer = b.ops->transfers[at];
    if (b.transfer_bytes[at] > 0 && through(to_us, transfer.peer))
      posted[transfer.sends ? 1 : 0].push_back(at);
  }
  auto table = std::make_unique<MatchTable>();
  table->partner.assign(a.ops->transfers.size(), plan::kNone32);
  table->duration_ps.assign(a.ops->transfers.size(), 0);
  table->core_ps.assign(a.ops->transfers.size(), 0);
  table->timed_bytes.assign(a.ops->transfers.size(), 0);
  std::size_t next[2] = {0, 0};
  for (std::uint32_t at = 0; at < a.ops->transfers.size(); ++at) {
    const plan::Transfer& transfer = a.ops->transfers[at];
    if (a.transfer_bytes[at] == 0 || !through(to_them, transfer.peer)) continue;
    const std::size_t direction = transfer.sends ? 0 : 1;  // our send meets their receive
    if (next[direction] == posted[direction].size()) continue;
    const std::uint32_t partner = posted[direction][next[direction]++];
    table->partner[at] = partner;
    // Messages of one op in one direction share the rank's link, at both ends.
    const base::Bytes bytes{std::max(a.posted_bytes[at], b.posted_bytes[partner])};
    table->timed_bytes[at] = bytes.value();
    table->duration_ps[at] =
        base::ToPicoseconds(models_.collectives->P2P(bytes, routes_[route])).value();
    table->core_ps[at] = base::ToPicoseconds(models_.collectives->CoreTimeOfP2P(bytes)).value();
  }
  return table;
}

}  // namespace isthmus::sim
