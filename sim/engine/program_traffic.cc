#include "sim/engine/program_traffic.h"

#include <set>
#include <span>

#include "base/hash.h"
#include "sim/engine/needed_by.h"
#include "sim/engine/rank_tables.h"

namespace isthmus::sim {
namespace {

/// The peers that ranks of a variant send to and receive from, and the directions they copy in.
struct Talk {
  std::array<std::vector<bool>, 2> with;
  std::array<bool, 2> copies{};
};

Talk TalkOf(const Variant& variant) {
  const plan::Role& role = *variant.ops;
  Talk talk;
  talk.with.fill(std::vector<bool>(role.peers.size(), false));
  for (std::size_t at = 0; at < role.transfers.size(); ++at) {
    const plan::Transfer& transfer = role.transfers[at];
    if (variant.transfer_bytes[at] > 0) talk.with[transfer.sends ? 0 : 1][transfer.peer] = true;
  }
  for (const plan::Op& op : role.ops)
    if (op.kind == plan::OpKind::kCopy) talk.copies[static_cast<std::size_t>(op.copy())] = true;
  return talk;
}

}  // namespace

ProgramTraffic::ProgramTraffic(const std::vector<Variant>& variants, const RankTables& tables,
                               const topology::Cluster& cluster) {
  TrafficMap map(cluster);
  NameMessages(variants, tables, cluster, map);
  NameCollectives(variants, tables, cluster, map);
  traffic_ = std::move(map).Settled();
}

ProgramTraffic::ProgramTraffic(const std::vector<Variant>& variants, const RankTables& tables,
                               const topology::Cluster& cluster, TrafficMap& map) {
  NameMessages(variants, tables, cluster, map);
  NameCollectives(variants, tables, cluster, map);
}

void ProgramTraffic::NameMessages(const std::vector<Variant>& variants, const RankTables& tables,
                                  const topology::Cluster& cluster, TrafficMap& map) {
  std::vector<Talk> talks;
  for (const Variant& variant : variants) talks.push_back(TalkOf(variant));
  for (std::size_t rank = 0; rank < tables.variant_of_rank().size(); ++rank) {
    const Talk& talk = talks[tables.variant_of_rank()[rank]];
    const std::vector<base::Rank>& peers = tables.peers_of_rank()[rank];
    const base::DeviceId gpu = cluster.DeviceOf(base::Rank(rank));
    std::vector<std::uint32_t>& sends = sends_.emplace_back(peers.size(), plan::kNone32);
    std::vector<std::uint32_t>& receives = receives_.emplace_back(peers.size(), plan::kNone32);
    for (std::size_t slot = 0; slot < peers.size(); ++slot) {
      const base::DeviceId peer = cluster.DeviceOf(peers[slot]);
      const base::Rank here(rank);
      const base::Rank there = peers[slot];
      if (talk.with[0][slot])
        sends[slot] = NeededBy([&] { return map.Message(gpu, peer); },
                               [&] { return MessagesBetween(here, there); });
      if (talk.with[1][slot])
        receives[slot] = NeededBy([&] { return map.Message(peer, gpu); },
                                  [&] { return MessagesBetween(there, here); });
    }
    Copies& copied = copies_.emplace_back(Copies{plan::kNone32, plan::kNone32});
    for (std::size_t direction = 0; direction < copied.size(); ++direction) {
      if (!talk.copies[direction]) continue;
      copied[direction] =
          NeededBy([&] { return map.Copy(gpu, static_cast<plan::CopyDirection>(direction)); },
                   [&] { return CopiesOf(base::Rank(rank)); });
    }
  }
}

void ProgramTraffic::NameCollectives(const std::vector<Variant>& variants, const RankTables& tables,
                                     const topology::Cluster& cluster, TrafficMap& map) {
  // By variant: what kinds of collectives it calls on which of its groups.
  std::vector<std::set<std::pair<std::uint32_t, plan::CollectiveKind>>> calls;
  for (const Variant& variant : variants) {
    auto& called = calls.emplace_back();
    for (const plan::Op& op : variant.ops->ops) {
      const bool flows = op.kind == plan::OpKind::kCollective && op.group != plan::kNone32 &&
                         op.purpose != plan::Purpose::kScalars && variant.bytes_of(op) > 0;
      if (flows) called.emplace(op.group, op.collective());
    }
  }
  for (std::size_t rank = 0; rank < tables.variant_of_rank().size(); ++rank) {
    for (const auto& [slot, kind] : calls[tables.variant_of_rank()[rank]]) {
      const std::uint32_t group = tables.groups_of_rank()[rank][slot];
      const auto [at, is_new] = collectives_.try_emplace({group, kind}, plan::kNone32);
      const std::vector<base::Rank>& members = tables.groups()[group].members;
      if (!is_new || members.size() == 1) continue;
      std::vector<base::DeviceId> gpus;
      for (const base::Rank member : members) gpus.push_back(cluster.DeviceOf(member));
      // By their own names: a structured binding can't be captured.
      const plan::CollectiveKind called = kind;
      at->second = NeededBy([&] { return map.Collective(called, gpus); },
                            [&] { return CollectivesOf(members); });
    }
  }
}

std::vector<std::uint64_t> ProgramTraffic::OwnersOf(
    const std::vector<std::uint32_t>& rank_colours,
    const std::vector<std::uint64_t>& group_hashes) const {
  // Sums, since one shape may be of several peers or groups.
  std::vector<std::uint64_t> owners(traffic_.shapes.size(), 0);
  const auto add = [&owners](std::uint32_t shape, std::uint64_t owner, std::uint64_t as) {
    if (shape != plan::kNone32) owners[shape] += base::HashBuilder().Add(owner).Add(as).digest();
  };
  for (std::size_t rank = 0; rank < sends_.size(); ++rank) {
    const std::uint64_t colour = rank_colours[rank];
    for (std::size_t slot = 0; slot < sends_[rank].size(); ++slot)
      add(sends_[rank][slot], colour, slot);
    for (std::size_t way = 0; way < 2; ++way) add(copies_[rank][way], colour, ~way);
  }
  for (const auto& [called, shape] : collectives_)
    add(shape, group_hashes[called.first], static_cast<std::uint64_t>(called.second));
  return owners;
}

std::uint64_t ProgramTraffic::HashOfRank(std::size_t rank, const TrafficColours& colours) const {
  base::HashBuilder hash;
  const auto add = [&](std::span<const std::uint32_t> shapes) {
    for (const std::uint32_t shape : shapes)
      if (shape != plan::kNone32) hash.Add(colours.HashOf(shape));
  };
  add(sends_[rank]);
  add(receives_[rank]);
  add(copies_[rank]);
  return hash.digest();
}

std::uint64_t ProgramTraffic::HashOfGroup(std::uint32_t group,
                                          const TrafficColours& colours) const {
  base::HashBuilder hash;
  for (auto at = collectives_.lower_bound({group, plan::CollectiveKind{}});
       at != collectives_.end() && at->first.first == group; ++at)
    if (at->second != plan::kNone32) hash.Add(colours.HashOf(at->second));
  return hash.digest();
}

void ProgramTraffic::Bind(const Lowered& lowered, const TrafficColours* colours) {
  for (const LoweredClass& cls : lowered.classes)
    rank_of_class_.push_back(cls.representative.index());
  for (const Communicator& communicator : lowered.communicators)
    group_of_communicator_.push_back(communicator.group);
  if (colours == nullptr) return;
  std::vector<std::uint32_t> used;
  const auto use = [&used](std::uint32_t shape) {
    if (shape != plan::kNone32) used.push_back(shape);
  };
  for (const std::size_t rank : rank_of_class_) {
    for (const std::uint32_t shape : sends_[rank]) use(shape);
    for (const std::uint32_t shape : copies_[rank]) use(shape);
  }
  const std::set<std::uint32_t> groups(group_of_communicator_.begin(),
                                       group_of_communicator_.end());
  for (const auto& [called, shape] : collectives_)
    if (groups.contains(called.first)) use(shape);
  traffic_ = colours->Fold(used);
}

std::uint32_t ProgramTraffic::Collective(std::uint32_t communicator,
                                         plan::CollectiveKind kind) const {
  const auto at = collectives_.find({group_of_communicator_[communicator], kind});
  return at == collectives_.end() ? plan::kNone32 : at->second;
}

}  // namespace isthmus::sim
