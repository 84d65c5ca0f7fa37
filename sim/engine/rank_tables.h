#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/lower.h"
#include "sim/engine/work_costs.h"

namespace isthmus::sim {

/// Where every rank's groups and peers are, before ranks are put into classes: the facts that both
/// folding and costs need. Built once; indices are dense and in the order of first use by rank.
class RankTables {
 public:
  struct RankGroup {
    std::vector<base::Rank> members;
    std::uint32_t locality = 0;  // of WorkCosts
    std::uint32_t family =
        0;  // groups that can stand for each other: same module and axes, or edge
    /// Who calls it what: (rank, index into its Role::groups), by rank. A rank of several groups of
    /// one family can tell them apart by nothing else once its peers are folded.
    std::vector<std::pair<base::Rank, std::uint32_t>> callers;
  };

  RankTables(const plan::Program& program, const topology::Cluster& cluster,
             const CostModels& models, Lowered& lowered);

  const std::vector<RankGroup>& groups() const { return groups_; }
  /// By rank: indices into groups(), by Role::groups.
  const std::vector<std::vector<std::uint32_t>>& groups_of_rank() const { return groups_of_rank_; }
  const std::vector<std::vector<base::Rank>>& peers_of_rank() const { return peers_of_rank_; }
  const std::vector<std::vector<const MatchTable*>>& matches_of_rank() const {
    return matches_of_rank_;
  }
  const std::vector<std::uint32_t>& variant_of_rank() const { return variant_of_rank_; }

 private:
  void FindGroups(base::Rank rank);
  std::uint32_t LocalityOf(std::span<const base::Rank> members);
  std::uint32_t AddGroup(std::vector<base::Rank> members, std::uint32_t family);
  std::uint32_t AxesGroup(base::Rank rank, std::uint16_t module, plan::AxisSet axes);
  std::uint32_t FamilyOf(const plan::GroupRef& group);
  std::uint32_t LocalityOver(base::Rank rank, std::uint16_t module, plan::AxisSet axes);
  InnerLocalities PlacesOf(base::Rank rank, std::uint16_t module);
  void FindVariant(base::Rank rank);
  void CostVariant(Variant& variant, base::Rank rank);
  std::int64_t CostOfOp(const Variant& variant, base::Rank rank, const plan::Op& op,
                        const WorkCost** work);
  std::int64_t CoreTimeOfOp(const Variant& variant, base::Rank rank, const plan::Op& op) const;
  /// Fills sync_after_ps and sync_at_start_ps.
  static void FindSync(Variant& variant);
  void CountTransfers(Variant& variant) const;
  void FindPeers(base::Rank rank);
  void MatchPeers(base::Rank rank);
  std::uint32_t RouteClass(base::Rank from, base::Rank to);
  std::uint32_t ClassOfRoute(base::Rank from, base::Rank to);
  std::unique_ptr<MatchTable> Match(std::uint32_t ours, std::uint32_t theirs,
                                    const std::vector<std::uint32_t>& to_them,
                                    const std::vector<std::uint32_t>& to_us,
                                    std::uint32_t route) const;

  const plan::Program& program_;
  const topology::Cluster& cluster_;
  const CostModels& models_;
  Lowered& lowered_;
  WorkCosts costs_;
  std::vector<std::shared_ptr<const OpGraph>> graphs_;  // by role
  std::vector<RankGroup> groups_;
  /// By module and bits of the axes, then by the grid's number of the group.
  std::map<std::pair<std::uint16_t, std::uint8_t>, std::vector<std::uint32_t>> axes_groups_;
  std::map<std::pair<std::uint32_t, std::vector<base::Rank>>, std::uint32_t> listed_groups_;
  std::map<std::tuple<int, std::uint16_t, std::uint8_t>, std::uint32_t> families_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> variants_;
  std::vector<std::uint32_t> locality_alone_;  // by rank, once it was asked for
  std::map<std::tuple<int, double, double>, std::uint32_t> route_classes_;
  std::vector<topology::Route> routes_;
  std::map<topology::RouteTraits, std::uint32_t> route_of_traits_;
  std::unordered_map<std::uint64_t, std::uint32_t> route_of_pair_;
  std::map<std::vector<std::uint32_t>, const MatchTable*> matches_;
  std::vector<std::vector<std::uint32_t>> groups_of_rank_;
  std::vector<std::vector<base::Rank>> peers_of_rank_;
  std::vector<std::vector<const MatchTable*>> matches_of_rank_;
  std::vector<std::uint32_t> variant_of_rank_;
};

}  // namespace isthmus::sim
