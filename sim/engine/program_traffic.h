#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/engine/lowered.h"
#include "sim/network/traffic_map.h"

namespace isthmus::sim {

/// What every message, collective and copy of a program puts on the network.
///
/// Not in it: inner collectives of Compute ops (tensor parallelism within a node has its NVLinks to
/// itself while it runs, and as flows it would be hundreds of millions), and sums of one number
/// over the world, which fill no link. Takes a program whose ranks are not folded. Immutable.
/// Memory: a number per peer, group and copy direction of a rank, beside the map.
class ProgramTraffic {
 public:
  /// Throws base::Error where dead links leave no route.
  ProgramTraffic(const Lowered& lowered, const topology::Cluster& cluster);

  const TrafficMap& map() const { return map_; }
  /// Messages of a class to its peer `slot`.
  std::uint32_t Send(std::uint32_t cls, std::uint32_t slot) const { return sends_[cls][slot]; }
  /// kNone32: nothing.
  std::uint32_t Collective(std::uint32_t communicator, plan::CollectiveKind kind) const;
  std::uint32_t Copy(std::uint32_t cls, plan::CopyDirection direction) const {
    return copies_[cls][static_cast<std::size_t>(direction)];
  }

 private:
  void NameSends(const Lowered& lowered, const topology::Cluster& cluster);
  void NameCollectives(const Lowered& lowered, const topology::Cluster& cluster);
  void NameCopies(const Lowered& lowered, const topology::Cluster& cluster);

  TrafficMap map_;
  std::vector<std::vector<std::uint32_t>> sends_;
  std::map<std::pair<std::uint32_t, plan::CollectiveKind>, std::uint32_t> collectives_;
  std::vector<std::array<std::uint32_t, 2>> copies_;
};

}  // namespace isthmus::sim
