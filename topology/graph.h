#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "topology/route.h"

namespace isthmus::topology {

class Cluster;

/// A cluster's devices and live links as a graph that can be searched and drawn.
///
/// Built only where arithmetic doesn't do: for printing, for connectivity, and for routes round
/// dead links. Agrees with Cluster::RouteBetween on every route of least cost.
///
/// Lifetime: the cluster must outlive it. Thread-safe: immutable after construction.
/// Cost: building is O(devices + links), about 16 devices and 50 links a node of 8 GPUs.
class ClusterGraph {
 public:
  /// The whole cluster.
  explicit ClusterGraph(const Cluster& cluster);
  /// What two GPUs can use to reach each other: the devices of their NVLink domains, the leaf
  /// switches of those, the spines of their pods and the cores.
  static ClusterGraph OfDomainsOf(const Cluster& cluster, base::DeviceId a, base::DeviceId b);

  ClusterGraph(ClusterGraph&& other) noexcept;
  ~ClusterGraph();

  int num_devices() const;
  int num_live_links() const;

  /// The path of least RoutingCost from a GPU; absent if there is none. No path leads through a
  /// host's memory, through a GPU of a third NVLink domain, or down to a switch and up again.
  std::optional<Route> Shortest(base::DeviceId from, base::DeviceId to) const;

  /// The cut where there is no path: dead links from what can be reached on the way to the other
  /// end to what can't, by their ids.
  std::vector<Link> DeadLinksBetween(base::DeviceId from, base::DeviceId to) const;

  /// The GPUs, sorted, in sets that can reach each other; one set if the cluster is whole. Largest
  /// set first, equal ones by their first GPU.
  std::vector<std::vector<base::DeviceId>> GpuIslands() const;

  /// The graph in Graphviz' DOT language, one edge per cable.
  std::string Dot() const;

 private:
  struct Parts;
  ClusterGraph(const Cluster& cluster, std::span<const base::DeviceId> devices);

  std::unique_ptr<const Parts> parts_;
};

}  // namespace isthmus::topology
