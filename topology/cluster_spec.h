#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace isthmus::topology {

/// A figure and where it comes from: a data sheet, a paper, a measurement with its date, or
/// "assumed: …" with the reason.
template <typename T>
struct Sourced {
  T value{};
  std::string source;

  friend bool operator==(const Sourced&, const Sourced&) = default;
};

/// A run of equal nodes. All bandwidths are per direction; all latencies are of one link.
///
/// Every GPU has one link into the NVSwitch fabric of its NVLink domain (a node, or a run of nodes
/// of the group) and one PCIe link to a PCIe switch of its node; a PCIe switch has one NIC and one
/// link to the host's memory. GPUs are dealt to NICs in blocks: with 8 GPUs and 4 NICs, GPUs 0 and
/// 1 have NIC 0.
struct NodeGroup {
  std::string name;  ///< e.g. "llm" or "encoder-island"; unique in the cluster
  int num_nodes = 1;
  int gpus_per_node = 8;
  int nics_per_node = 8;            ///< divides gpus_per_node; 0 only in a cluster of one node
  int nodes_per_nvlink_domain = 1;  ///< 18 of GB200 NVL72; the last domain may have fewer
  std::string gpu;                  ///< name of the GPU's profile, e.g. "h100-sxm"
  std::string source;               ///< of the counts above

  Sourced<base::BytesPerSecond> nvlink_bandwidth;  ///< of a GPU into NVSwitch; 0 if alone there
  Sourced<base::Seconds> nvlink_latency;           ///< GPU to NVSwitch
  Sourced<base::BytesPerSecond> nic_bandwidth;     ///< of one NIC
  Sourced<base::Seconds> nic_latency;              ///< PCIe switch to leaf switch, NIC included
  Sourced<base::BytesPerSecond> pcie_bandwidth;    ///< of a GPU, also of a PCIe switch to the host
  Sourced<base::Seconds> pcie_latency;             ///< of one PCIe link

  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

enum class LeafWiring {
  kRailOptimised,  ///< one leaf switch per NIC index ("rail") in each leaf group
  kShared,         ///< one leaf switch for all NICs of a leaf group
};

/// The third tier of a fat tree: spine switches of several pods under core switches.
///
/// A pod is a run of leaf groups with spine switches of its own. Core switches lie in planes:
/// spine switch s of every pod is joined to the cores of plane s, num_cores / num_spines of them.
struct CoreTier {
  Sourced<int> leaf_groups_per_pod;
  Sourced<int> num_cores{1, "default: one a spine switch"};  ///< a multiple of num_spines
  Sourced<double> oversubscription;  ///< bandwidth of a pod's spines down over that up to cores
  Sourced<base::BytesPerSecond> port_bandwidth;  ///< of one port between spine and core
  Sourced<base::Seconds> hop_latency;            ///< spine to core, switch included

  friend bool operator==(const CoreTier&, const CoreTier&) = default;
};

/// Equal-cost multi-path: each pair of NICs keeps to one spine (and core) switch, drawn by hash, so
/// that some links get more pairs than others. Without it traffic spreads evenly, and all switches
/// of a layer count as one device that never blocks.
struct Ecmp {
  std::uint64_t seed = 0;

  friend bool operator==(const Ecmp&, const Ecmp&) = default;
};

/// Cables of a fabric that is given cable by cable.
///
/// An end is the name of a switch, or NICs: "nic NODE.INDEX", where either may be a number, a range
/// "0-7" or "*" for all; that makes a cable for each of them. Figures of 0 without a source are
/// those of the NIC, or between switches of FabricSpec's port and hop.
struct CableSpec {
  std::string from;
  std::string to;
  int count = 1;  ///< side by side between the same ends, which makes one link
  Sourced<base::BytesPerSecond> bandwidth;  ///< of one
  Sourced<base::Seconds> latency;

  friend bool operator==(const CableSpec&, const CableSpec&) = default;
};

/// Any fabric, by its switches and cables. Paths are of least latency; of those of equal cost each
/// pair of NICs keeps to one, drawn by hash (with Ecmp's seed, 0 without).
struct CustomFabric {
  std::vector<std::string> switches;
  std::vector<CableSpec> cables;

  friend bool operator==(const CustomFabric&, const CustomFabric&) = default;
};

/// The scale-out network: leaf switches under spine switches, and those under cores if there is a
/// third tier. A leaf group (NVIDIA's scalable unit) is a run of nodes with the same leaf switches;
/// each NodeGroup starts a new one. Every leaf is joined to all spine switches (of its pod).
struct FabricSpec {
  LeafWiring wiring = LeafWiring::kRailOptimised;
  Sourced<int> nodes_per_leaf_group;
  Sourced<double> oversubscription;  ///< bandwidth of a leaf down to NICs over that up to spines
  Sourced<base::BytesPerSecond> spine_port_bandwidth;  ///< of one port between leaf and spine
  Sourced<base::Seconds> hop_latency;                  ///< leaf to spine, switch included
  Sourced<int> num_spines{1, "default: one"};          ///< switches, of a pod if there are pods
  std::optional<CoreTier> core{};                      ///< absent: two tiers
  std::optional<Ecmp> ecmp{};
  std::optional<CustomFabric> custom{};  ///< instead of leaves, spines and cores

  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

/// Which kind of link a LinkFault is about, and what `index` counts there.
enum class FaultyPart {
  kNvlink,    ///< of the node's GPU `index` into NVSwitch
  kPcie,      ///< of the node's GPU `index` to its PCIe switch
  kNic,       ///< of the node's NIC `index` to its leaf switch; a dead one is a lost NIC
  kUplink,    ///< of leaf switch `index` of the node's leaf group to its spines, or to one of them
  kCoreLink,  ///< of spine switch `index` of the node's pod to its cores, or to one of them
  kSpine,     ///< all links of spine switch `index` of the node's pod
  kCore,      ///< all links of core switch `index`, whatever the node
  kCable,     ///< entry `index` of a custom fabric's cables, whatever the node
  kSwitch,    ///< all links of a custom fabric's switch `index`, whatever the node
};

/// As files name them.
inline constexpr std::array<std::pair<std::string_view, FaultyPart>, 9> kFaultyParts = {
    {{"nvlink", FaultyPart::kNvlink},
     {"pcie", FaultyPart::kPcie},
     {"nic", FaultyPart::kNic},
     {"uplink", FaultyPart::kUplink},
     {"core_link", FaultyPart::kCoreLink},
     {"spine", FaultyPart::kSpine},
     {"core", FaultyPart::kCore},
     {"cable", FaultyPart::kCable},
     {"switch", FaultyPart::kSwitch}}};

/// A link, both its directions, with a part of its bandwidth left. 0 is a dead link. Where the
/// switches of a layer count as one, the layer loses their share: one dead spine of 4 is a quarter.
struct LinkFault {
  FaultyPart part = FaultyPart::kNic;
  base::NodeId node{0};
  int index = 0;
  double bandwidth_factor = 0;  ///< in [0, 1]
  std::optional<int> to{};      ///< of kUplink the spine, of kCoreLink the core; absent: all

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

/// A GPU that computes slower than its profile says.
struct SlowGpu {
  base::DeviceId device{0};
  double speed_factor = 1;  ///< in (0, 1]: 0.9 takes 1/0.9 of the time

  friend bool operator==(const SlowGpu&, const SlowGpu&) = default;
};

/// How times of one kind vary from op to op: a random factor of mean 1, and rarely a stall on top.
struct TimeVariation {
  enum class Distribution {
    kLognormal,    ///< long tail on both sides
    kExponential,  ///< never under 1 - deviation, long tail above
  };
  struct Stall {
    double probability = 0;  ///< of one op, in [0, 1]
    base::Seconds time{0};   ///< added to the op that it hits

    friend bool operator==(const Stall&, const Stall&) = default;
  };

  Distribution distribution = Distribution::kLognormal;
  double deviation = 0;          ///< standard deviation of the factor, in [0, 1]
  std::optional<Stall> stall{};  ///< an interrupt, a page fault, a throttled clock

  friend bool operator==(const TimeVariation&, const TimeVariation&) = default;
};

/// Longest stall that a cluster may have.
inline constexpr base::Seconds kMaxStall{3600};

/// Random variation of every rank's ops: what is drawn depends on the seed, rank, step and op alone
/// (docs/models/jitter.md).
struct Jitter {
  std::uint64_t seed = 0;
  TimeVariation compute;        ///< blocks of layers, optimizer
  TimeVariation communication;  ///< collectives between blocks, messages, copies

  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// Whether ranks have a device each, or share the one that the cluster has.
enum class RanksShare {
  kNothing,  ///< every rank has a GPU of its own, unless rank_devices says otherwise
  kCores,    ///< ranks are processes on the cores of a machine without GPUs
  kGpu,      ///< ranks are processes on one GPU
};

/// Ranks that may share one device.
inline constexpr int kMaxSharingRanks = 256;

/// What a cluster is made of: plain figures, filled by a preset or a file. Nothing is checked
/// here; `Cluster` checks.
struct ClusterSpec {
  std::string name;
  std::vector<NodeGroup> node_groups;  ///< nodes and GPUs are numbered in this order
  FabricSpec fabric;
  std::vector<LinkFault> link_faults;
  std::vector<SlowGpu> slow_gpus;
  std::optional<Jitter> jitter;  ///< only where every rank has a GPU of its own
  /// The GPU of each rank. Empty: rank r is on GPU r. Several ranks may share a GPU.
  std::vector<base::DeviceId> rank_devices;
  /// Other than kNothing: one node with one device. Of kCores the device is the host itself, `gpu`
  /// names its profile, and there are no links: processes talk over the loopback.
  RanksShare ranks_share = RanksShare::kNothing;
  int cores = 0;  ///< of kCores; 0: as many as the profile was measured on

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

/// Of all groups.
inline int NumNodes(const ClusterSpec& cluster) {
  int nodes = 0;
  for (const NodeGroup& group : cluster.node_groups) nodes += group.num_nodes;
  return nodes;
}

}  // namespace isthmus::topology
