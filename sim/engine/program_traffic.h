#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/engine/lowered.h"
#include "sim/network/traffic_colours.h"
#include "sim/network/traffic_map.h"

namespace isthmus::sim {

class RankTables;

/// What every message, collective and copy of a program puts on the network.
///
/// Not in it: inner collectives of Compute ops (tensor parallelism within a node has its NVLinks to
/// itself while it runs, and as flows it would be hundreds of millions), and sums of one number
/// over the world, which fill no link.
///
/// Shapes are named for ranks and groups; Bind() says which of them classes and communicators stand
/// for. Where ranks are folded the traffic is too: one link and one flow of each kind. Memory: a
/// number per peer, group and copy direction of a rank, beside the paths.
class ProgramTraffic {
 public:
  /// Throws base::Error that says what for where dead links leave no route.
  ProgramTraffic(const std::vector<Variant>& variants, const RankTables& tables,
                 const topology::Cluster& cluster);
  /// The same of one of several programs: shapes are named in `map`, traffic() stays empty.
  ProgramTraffic(const std::vector<Variant>& variants, const RankTables& tables,
                 const topology::Cluster& cluster, TrafficMap& map);

  /// Before Bind(), of all ranks; after it what is left of it.
  const Traffic& traffic() const { return traffic_; }

  // For folding, before Bind().
  /// Who causes each shape, from colours of ranks and hashes of groups.
  std::vector<std::uint64_t> OwnersOf(const std::vector<std::uint32_t>& rank_colours,
                                      const std::vector<std::uint64_t>& group_hashes) const;
  /// What the network makes of a rank's messages (both ways) and copies, and of a group's
  /// collectives.
  std::uint64_t HashOfRank(std::size_t rank, const TrafficColours& colours) const;
  std::uint64_t HashOfGroup(std::uint32_t group, const TrafficColours& colours) const;

  /// `colours`: null where every rank is a class of its own.
  void Bind(const Lowered& lowered, const TrafficColours* colours);

  // After Bind(); kNone32: nothing flows.
  std::uint32_t Send(std::uint32_t cls, std::uint32_t slot) const {
    return sends_[rank_of_class_[cls]][slot];
  }
  std::uint32_t Collective(std::uint32_t communicator, plan::CollectiveKind kind) const;
  std::uint32_t Copy(std::uint32_t cls, plan::CopyDirection direction) const {
    return copies_[rank_of_class_[cls]][static_cast<std::size_t>(direction)];
  }

 private:
  using Copies = std::array<std::uint32_t, 2>;  // by direction
  void NameMessages(const std::vector<Variant>& variants, const RankTables& tables,
                    const topology::Cluster& cluster, TrafficMap& map);
  void NameCollectives(const std::vector<Variant>& variants, const RankTables& tables,
                       const topology::Cluster& cluster, TrafficMap& map);

  Traffic traffic_;
  std::vector<std::vector<std::uint32_t>> sends_;     // by rank and peer
  std::vector<std::vector<std::uint32_t>> receives_;  // the same, of what the peer sends
  std::map<std::pair<std::uint32_t, plan::CollectiveKind>, std::uint32_t> collectives_;  // by group
  std::vector<Copies> copies_;                                                           // by rank
  std::vector<std::size_t> rank_of_class_;
  std::vector<std::uint32_t> group_of_communicator_;
};

}  // namespace isthmus::sim
