#include "sim/engine/lower.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "sim/engine/program_traffic.h"
#include "sim/engine/rank_tables.h"

namespace isthmus::sim {
namespace {

using ClassCallers = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The classes that meet in a group and what each calls it, ascending, each once.
ClassCallers CallersByClass(const RankTables::RankGroup& group,
                            const std::vector<std::uint32_t>& class_of_rank) {
  ClassCallers callers;
  callers.reserve(group.callers.size());
  for (const auto& [rank, slot] : group.callers)
    callers.emplace_back(class_of_rank[rank.index()], slot);
  std::sort(callers.begin(), callers.end());
  callers.erase(std::unique(callers.begin(), callers.end()), callers.end());
  return callers;
}

/// Colours of ranks, refined until members of a colour can't be told apart.
class Partition {
 public:
  /// `traffic`: null without flows; then `links` is too.
  Partition(const Lowered& lowered, const RankTables& tables, const ProgramTraffic* traffic,
            TrafficColours* links)
      : lowered_(lowered), tables_(tables), traffic_(traffic), links_(links) {}

  std::vector<std::uint32_t> Refine() {
    Start();
    std::size_t num_colours = Relabel();
    std::size_t num_on_links = 0;
    while (true) {
      const std::size_t on_links = Split();
      const std::size_t after = Relabel();
      if (after == num_colours && on_links == num_on_links) return colours_;
      num_colours = after;
      num_on_links = on_links;
    }
  }

 private:
  /// What the peer's messages are to us, whatever its colour: which of its ops each meets, how
  /// long.
  std::uint64_t HashOfMatch(const MatchTable* match, std::uint32_t peer_variant) {
    const auto [at, is_new] = match_hashes_.try_emplace({match, peer_variant}, 0U);
    if (!is_new) return at->second;
    base::HashBuilder hash;
    const OpGraph& graph = *lowered_.variants[peer_variant].graph;
    for (std::size_t transfer = 0; transfer < match->partner.size(); ++transfer) {
      const std::uint32_t partner = match->partner[transfer];
      if (partner == plan::kNone32) continue;
      hash.Add(static_cast<std::uint64_t>(transfer))
          .Add(graph.OpOfTransfer(partner))
          .Add(match->duration_ps[transfer]);
    }
    at->second = hash.digest();
    return at->second;
  }

  void Start() {
    const std::size_t num_ranks = tables_.variant_of_rank().size();
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      base::HashBuilder hash;
      hash.Add(tables_.variant_of_rank()[rank]);
      const auto& matches = tables_.matches_of_rank()[rank];
      for (std::size_t slot = 0; slot < matches.size(); ++slot) {
        const base::Rank peer = tables_.peers_of_rank()[rank][slot];
        hash.Add(HashOfMatch(matches[slot], tables_.variant_of_rank()[peer.index()]));
      }
      hashes_.push_back(hash.digest());
    }
  }

  /// Returns how many colours flows and links have.
  std::size_t Split() {
    std::vector<std::uint64_t> group_hashes;
    for (const RankTables::RankGroup& group : tables_.groups()) {
      base::HashBuilder hash;
      for (const auto& [colour, slot] : CallersByClass(group, colours_)) hash.Add(colour).Add(slot);
      group_hashes.push_back(hash.digest());
    }
    std::size_t on_links = 0;
    if (traffic_ != nullptr) {
      on_links = links_->Refine(traffic_->OwnersOf(colours_, group_hashes));
      for (std::uint32_t group = 0; group < group_hashes.size(); ++group) {
        group_hashes[group] = base::HashBuilder()
                                  .Add(group_hashes[group])
                                  .Add(traffic_->HashOfGroup(group, *links_))
                                  .digest();
      }
    }
    for (std::size_t rank = 0; rank < hashes_.size(); ++rank) {
      base::HashBuilder hash;
      hash.Add(colours_[rank]);
      for (const std::uint32_t group : tables_.groups_of_rank()[rank])
        hash.Add(group_hashes[group]);
      for (const base::Rank peer : tables_.peers_of_rank()[rank]) hash.Add(colours_[peer.index()]);
      if (traffic_ != nullptr) hash.Add(traffic_->HashOfRank(rank, *links_));
      hashes_[rank] = hash.digest();
    }
    return on_links;
  }

  /// Colours numbered in the order of their first rank; returns how many there are.
  std::size_t Relabel() {
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    colours_.resize(hashes_.size());
    for (std::size_t rank = 0; rank < hashes_.size(); ++rank) {
      colours_[rank] =
          numbers.try_emplace(hashes_[rank], static_cast<std::uint32_t>(numbers.size()))
              .first->second;
    }
    return numbers.size();
  }

  const Lowered& lowered_;
  const RankTables& tables_;
  const ProgramTraffic* traffic_;
  TrafficColours* links_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> colours_;
  std::map<std::pair<const MatchTable*, std::uint32_t>, std::uint64_t> match_hashes_;
};

void FillClasses(const RankTables& tables, Lowered& lowered) {
  for (std::size_t rank = 0; rank < lowered.class_of_rank.size(); ++rank) {
    const std::uint32_t cls = lowered.class_of_rank[rank];
    if (cls == lowered.classes.size()) {
      LoweredClass& fresh = lowered.classes.emplace_back();
      fresh.representative = base::Rank(rank);
      fresh.variant = tables.variant_of_rank()[rank];
    }
    lowered.classes[cls].members.emplace_back(rank);
  }
  lowered.folded = lowered.classes.size() < lowered.class_of_rank.size();
  std::map<std::pair<std::uint32_t, ClassCallers>, std::uint32_t> known;
  std::vector<std::optional<std::uint32_t>> communicator_of_group(tables.groups().size());
  for (LoweredClass& cls : lowered.classes) {
    const std::size_t rank = cls.representative.index();
    for (const std::uint32_t group : tables.groups_of_rank()[rank]) {
      if (!communicator_of_group[group]) {
        const RankTables::RankGroup& concrete = tables.groups()[group];
        Communicator communicator{.group = group};
        for (const base::Rank member : concrete.members) {
          communicator.classes.push_back(lowered.class_of_rank[member.index()]);
        }
        std::sort(communicator.classes.begin(), communicator.classes.end());
        communicator.classes.erase(
            std::unique(communicator.classes.begin(), communicator.classes.end()),
            communicator.classes.end());
        const auto [at, is_new] =
            known.try_emplace({concrete.family, CallersByClass(concrete, lowered.class_of_rank)},
                              static_cast<std::uint32_t>(lowered.communicators.size()));
        if (is_new) lowered.communicators.push_back(std::move(communicator));
        communicator_of_group[group] = at->second;
      }
      cls.communicators.push_back(*communicator_of_group[group]);
    }
    for (const base::Rank peer : tables.peers_of_rank()[rank]) {
      cls.peers.push_back(lowered.class_of_rank[peer.index()]);
    }
    cls.matches = tables.matches_of_rank()[rank];
  }
}

/// Every rank a class.
void KeepRanks(const RankTables& tables, Lowered& lowered) {
  lowered.class_of_rank.resize(tables.variant_of_rank().size());
  std::iota(lowered.class_of_rank.begin(), lowered.class_of_rank.end(), 0U);
}

/// Whether two GPUs that have a way out may have none to each other.
bool MayBeSplit(const topology::ClusterSpec& spec) {
  return spec.fabric.custom.has_value() ||
         std::ranges::any_of(spec.link_faults, [](const topology::LinkFault& fault) {
           return fault.bandwidth_factor == 0;
         });
}

}  // namespace

Lowered Lower(const plan::Program& program, const topology::Cluster& cluster,
              const CostModels& models, bool fold, bool flows) {
  Lowered lowered;
  lowered.program = &program;
  const RankTables tables(program, cluster, models, lowered);
  std::shared_ptr<ProgramTraffic> traffic;
  std::optional<TrafficColours> links;
  if (flows) {
    traffic = std::make_shared<ProgramTraffic>(lowered.variants, tables, cluster);
  } else if (MayBeSplit(cluster.spec()) && models.host_order != HostOrder::kBlocking) {
    // Closed forms ask for no routes of collectives: find out whether there are any.
    const ProgramTraffic routes(lowered.variants, tables, cluster);
  }
  if (fold) {
    if (flows) links.emplace(traffic->traffic());
    lowered.class_of_rank =
        Partition(lowered, tables, traffic.get(), links ? &*links : nullptr).Refine();
  } else {
    KeepRanks(tables, lowered);
  }
  FillClasses(tables, lowered);
  if (flows) traffic->Bind(lowered, lowered.folded ? &*links : nullptr);
  lowered.traffic = std::move(traffic);
  return lowered;
}

Lowered LowerOnto(TrafficMap& map, const plan::Program& program, const topology::Cluster& cluster,
                  const CostModels& models) {
  Lowered lowered;
  lowered.program = &program;
  const RankTables tables(program, cluster, models, lowered);
  auto traffic = std::make_shared<ProgramTraffic>(lowered.variants, tables, cluster, map);
  KeepRanks(tables, lowered);
  FillClasses(tables, lowered);
  traffic->Bind(lowered, nullptr);
  lowered.traffic = std::move(traffic);
  return lowered;
}

}  // namespace isthmus::sim
