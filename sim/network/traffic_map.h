#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "plan/model/kernel.h"
#include "plan/program/op.h"
#include "topology/cluster.h"

namespace isthmus::sim {

/// A link that traffic may cross.
struct TrafficLink {
  topology::Link link;
  /// False: whatever comes, it is never short, since the links around it let no more through.
  bool may_be_short = true;
};

/// The links of one flow, as numbers of Traffic::links.
struct TrafficPath {
  std::vector<std::uint32_t> links;      // all, in order
  std::vector<std::uint32_t> contended;  // those that may be short
  double bytes_per_second = 0;           // of the slowest
};

/// One flow of a message or collective of S bytes: share · S bytes over a path.
struct TrafficPart {
  std::uint32_t path = 0;
  double share = 0;
  double seconds_per_byte = 0;  // of the size, alone
};

/// What one kind of message or collective puts on the network, all at once.
struct TrafficShape {
  std::vector<TrafficPart> parts;
  /// How long a byte of its size takes if nothing else is on the network: the largest over its
  /// flows of share / rate of the slowest link, and over its links of all shares / rate.
  double seconds_per_byte = 0;
};

/// Links, paths over them, and shapes over those; each names the ones before by number.
struct Traffic {
  std::vector<TrafficLink> links;
  std::vector<TrafficPath> paths;
  std::vector<TrafficShape> shapes;
};

/// The flows that messages, copies and collectives consist of, and the links they cross. Only links
/// in use are in it.
///
/// Collectives are concurrent flows on the edges of the rings that NCCL would use, one per GPU (n
/// ranks on N NVLink domains, p of them in one, q NICs used there), with the bytes that the
/// algorithm puts on the edge, never busbw. Formulas and sources: docs/models/flow.md.
///
/// Use: name all shapes, then take the traffic. Throws base::Error where dead links leave no
/// route. Lifetime: the cluster must outlive it. Cost: a route per new pair of GPUs.
class TrafficMap {
 public:
  explicit TrafficMap(const topology::Cluster& cluster)
      : cluster_(cluster),
        number_of_link_(static_cast<std::size_t>(cluster.num_links()), plan::kNone32) {}

  /// Numbers of shapes, equal for equal arguments.
  std::uint32_t Message(base::DeviceId from, base::DeviceId to);
  std::uint32_t Copy(base::DeviceId gpu, plan::CopyDirection direction);
  /// `gpus` are the members' in the order of their ranks, no GPU twice.
  std::uint32_t Collective(plan::CollectiveKind kind, const std::vector<base::DeviceId>& gpus);

  /// All that was named, with the links found that may be short.
  Traffic Settled() &&;

 private:
  /// A group's members by node (an NVLink domain).
  struct Placed {
    struct Door {
      base::DeviceId gpu;
      base::DeviceId nic;
      int rail = 0;
    };
    struct Node {
      std::vector<base::DeviceId> gpus;
      std::vector<Door> doors;  // one for each NIC that the group uses
    };
    std::vector<Node> nodes;  // in the order of its ranks
    int num_ranks = 0;
    int num_nics = 0;  // used in a node, least over nodes; 0 in one node
  };
  using Shape = TrafficShape;

  std::uint32_t PathOver(std::span<const topology::Link> links);
  std::uint32_t PathBetween(base::DeviceId from, base::DeviceId to);
  std::uint32_t AddShape(Shape shape);
  void AddEdge(Shape& shape, base::DeviceId from, base::DeviceId to, double share);
  Placed Place(const std::vector<base::DeviceId>& gpus) const;
  void AddDoors(Placed::Node& node, bool leaves_leaf_group) const;
  static std::vector<std::pair<base::DeviceId, base::DeviceId>> PairsOfDoors(
      const Placed::Node& from, const Placed::Node& to, std::size_t q);
  void AddRings(Shape& shape, plan::CollectiveKind kind, const Placed& placed);
  void AddVolumes(Shape& shape, const Placed& placed);
  /// What a rank sends towards another and takes from there, as far as the highest switch.
  void AddVolume(Shape& shape, base::DeviceId gpu, base::DeviceId far, double share);
  base::DeviceId CounterpartOf(base::DeviceId gpu, base::DeviceId other) const;

  const topology::Cluster& cluster_;
  Traffic traffic_;
  std::vector<std::uint32_t> number_of_link_;  // by id
  std::unordered_map<std::uint64_t, std::uint32_t> path_between_;
  std::unordered_map<std::uint64_t, std::uint32_t> messages_;
  std::map<std::pair<plan::CollectiveKind, std::vector<base::DeviceId>>, std::uint32_t>
      collectives_;
};

}  // namespace isthmus::sim
