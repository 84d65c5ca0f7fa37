#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "topology/cluster_spec.h"
#include "topology/internal/numbering.h"
#include "topology/internal/switch_paths.h"
#include "topology/locality.h"
#include "topology/route.h"

namespace isthmus::topology {

class ClusterGraph;

/// The machine: GPUs and what joins them. Facts and routes, no time.
///
/// GPUs come first in the numbering of devices, node by node and group by group, so GPU g of a
/// cluster of 8-GPU nodes is local GPU g % 8 of node g / 8. The other devices and the links
/// follow; they are worked out when asked for and never stored.
///
/// A route is the path of least latency over live links, then of fewest links, then of more
/// NVLink. Data never passes through a host's memory or a third NVLink domain, and in the fabric
/// goes up and then down. Where nothing is dead that is arithmetic (docs/models/topology.md); else
/// the path is searched for. With ECMP the spine and core switch of a route are a function of its
/// two NICs and the seed, drawn among the live ones; in a custom fabric all of its path.
///
/// Thread-safe: immutable after construction.
/// Cost: lookups O(number of node groups + log faults); a route the same, or a search among the
/// devices of two NVLink domains where its usual path is dead. Memory: the spec's, a number a
/// pod, and of a custom fabric 8 bytes a pair of switches.
class Cluster {
 public:
  /// Throws base::Error, listing every mistake, if `spec` can't be built.
  explicit Cluster(ClusterSpec spec);

  const ClusterSpec& spec() const { return spec_; }
  int num_nodes() const { return numbering_.num_nodes(); }
  int num_gpus() const { return numbering_.num_gpus(); }
  int num_nvlink_domains() const { return numbering_.num_domains(); }
  int num_leaf_groups() const { return numbering_.num_leaf_groups(); }
  /// 1 without a third tier.
  int num_pods() const { return numbering_.num_pods(); }
  int PodOfLeafGroup(int leaf_group) const { return numbering_.PodOfLeafGroup(leaf_group); }
  /// How many ranks the cluster has room for: its GPUs, unless the spec places ranks itself or has
  /// them share one device.
  int num_ranks() const;
  /// All kinds of devices and directed links; their ids are 0 … num − 1.
  int num_devices() const { return numbering_.num_devices(); }
  int num_links() const { return numbering_.num_links(); }

  int CountOf(DeviceKind kind) const { return numbering_.CountOf(kind); }
  /// Device `number`, from 0, of the ones of a kind.
  base::DeviceId DeviceNumbered(DeviceKind kind, int number) const;

  /// Throws base::Error if the cluster has no room for the rank.
  base::DeviceId DeviceOf(base::Rank rank) const;

  Device DeviceAt(base::DeviceId device) const;
  Link LinkAt(base::LinkId id) const;
  /// The links that leave a device, dead ones included, in a fixed order.
  std::vector<base::LinkId> LinksFrom(base::DeviceId device) const;

  // The next ones take a GPU.
  base::NodeId NodeOf(base::DeviceId gpu) const;
  int NvlinkDomainOf(base::DeviceId gpu) const;
  int LocalIndexOf(base::DeviceId gpu) const;
  const NodeGroup& NodeGroupOf(base::DeviceId gpu) const;
  base::DeviceId HostOf(base::DeviceId gpu) const;
  /// The GPU's own NIC, dead or alive; absent in a cluster without NICs.
  std::optional<base::DeviceId> NicOf(base::DeviceId gpu) const;
  /// The NIC that Locality counts the GPU with: its own unless dead links cut it off from that, or
  /// that from the leaf switch or, for a group that leaves its leaf group, the spines. Throws
  /// base::Error if there is none left.
  std::optional<base::DeviceId> UsedNicOf(base::DeviceId gpu, bool leaves_leaf_group) const;
  /// 1 unless the spec has it as a slow GPU.
  double SpeedFactorOf(base::DeviceId gpu) const;
  bool AreInOneNvlinkDomain(base::DeviceId a, base::DeviceId b) const;

  /// The route between two GPUs; absent if dead links leave none.
  std::optional<Route> FindRoute(base::DeviceId from, base::DeviceId to) const;
  /// The same where there has to be one: throws base::Error if there is none.
  Route RouteBetween(base::DeviceId from, base::DeviceId to) const;
  /// Without building the route; absent where its figures don't follow from them: if any link is
  /// dead or slow, and in a custom fabric.
  std::optional<RouteTraits> TraitsOfRoute(base::DeviceId from, base::DeviceId to) const;
  /// The routes of copies between a GPU and its host's memory. Throw if the PCIe link is dead.
  Route RouteToHost(base::DeviceId gpu) const;
  Route RouteFromHost(base::DeviceId gpu) const;

  /// Needs at least one rank and no rank twice. Throws base::Error if dead links cut one off.
  /// O(n) without allocation if the ranks come in the order of their GPUs, else O(n log n).
  GroupLocality Locality(std::span<const base::Rank> ranks) const;

 private:
  const NodeGroup& GroupOf(const internal::Block& block) const;
  double BandwidthFactorOf(internal::Cable cable, int number) const;
  bool IsDead(internal::Cable cable, int number) const;
  // Of a sound cable, per direction.
  std::pair<base::BytesPerSecond, base::Seconds> FiguresOf(internal::Cable cable, int number) const;
  std::pair<base::BytesPerSecond, base::Seconds> CustomFigures(
      const internal::CustomCable& cable) const;
  base::BytesPerSecond UplinkBandwidth(const internal::Block& block) const;
  base::BytesPerSecond CoreLinkBandwidth(int pod) const;

  Route RouteOver(base::DeviceId from, base::DeviceId to,
                  std::span<const base::LinkId> links) const;
  Route UsualRoute(base::DeviceId from, base::DeviceId to) const;
  Route OverDrawnSwitches(Route route) const;
  // From NIC to NIC; with ECMP over the switches that are drawn for the two.
  std::vector<base::LinkId> FabricPath(int exit_nic, int entry_nic) const;
  std::uint64_t DrawFor(int exit_nic, int entry_nic, int attempt) const;
  int DrawnPath(int exit_nic, int entry_nic) const;
  // The links of a path from leaf to leaf by its number among those of equal cost.
  std::vector<base::LinkId> PathNumbered(int number, int exit_leaf, int entry_leaf) const;
  // In a custom fabric.
  internal::SwitchPaths LivePaths() const;
  std::optional<Route> CustomRoute(base::DeviceId from, base::DeviceId to) const;
  std::int64_t CustomCost(int exit_nic, int entry_nic) const;
  std::int64_t CostToNic(int from_switch, int nic) const;
  std::vector<base::LinkId> CustomPath(int exit_nic, int entry_nic) const;
  bool HasOneSwitch(std::span<const base::Rank> ranks) const;

  Route CheckedCopyRoute(Route route, base::DeviceId gpu) const;
  bool TurnsToOtherRail(const internal::GpuPlace& from, const internal::GpuPlace& to) const;
  // The other nodes if `to` is the GPU itself.
  [[noreturn]] void ThrowCutOff(base::DeviceId gpu, base::DeviceId to,
                                const ClusterGraph& graph) const;

  GroupLocality LocalityInOrder(std::span<const base::Rank> ranks) const;
  struct NicUse {
    int nic = 0;
    base::BytesPerSecond to_nic;  // of the slowest link between the GPU and the NIC
  };
  NicUse UseOfNic(base::DeviceId gpu, const internal::GpuPlace& place,
                  bool leaves_leaf_group) const;
  bool HasDeadNic(int nic, bool leaves_leaf_group) const;
  base::BytesPerSecond NicBandwidth(int nic) const;
  std::optional<Route> RouteToSpines(base::DeviceId gpu, const ClusterGraph& graph) const;
  std::optional<base::BytesPerSecond> BandwidthInNode(base::DeviceId gpu,
                                                      const internal::GpuPlace& place) const;

  ClusterSpec spec_;
  internal::Numbering numbering_;
  std::vector<base::BytesPerSecond> core_link_bandwidths_;        // by pod
  internal::SwitchPaths switch_paths_;                            // live ones of a custom fabric
  std::vector<std::pair<base::LinkId, double>> link_factors_;     // up links, sorted by id
  std::vector<std::pair<base::DeviceId, double>> speed_factors_;  // sorted by id
};

}  // namespace isthmus::topology
