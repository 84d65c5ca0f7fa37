#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace isthmus::topology {

enum class DeviceKind { kGpu, kNvSwitch, kPcieSwitch, kNic, kHost, kLeaf, kSpine, kCore, kSwitch };
inline constexpr int kNumDeviceKinds = 9;

/// A vertex of the cluster. The NVSwitches of an NVLink domain count as one device, and without
/// ECMP so do the spine switches (of a pod) and the core switches: none of them blocks.
struct Device {
  base::DeviceId id{0};
  DeviceKind kind = DeviceKind::kGpu;
  std::optional<base::NodeId> node{};  ///< of what a node has; an NVSwitch may have several
  /// In its node; of a leaf in its leaf group, which is its rail if rail-optimised; of a spine in
  /// its pod.
  int index = 0;
  std::optional<int> leaf_group{};  ///< absent for spines and cores
  std::optional<int> domain{};      ///< the NVLink domain of a GPU or NVSwitch
  std::optional<int> pod{};         ///< of a spine, if there are pods
  bool is_layer = false;            ///< a spine or core that stands for all of its layer

  friend bool operator==(const Device&, const Device&) = default;
};

enum class LinkKind {
  kNvlink,  ///< GPU – NVSwitch
  kPcie,    ///< GPU – PCIe switch, PCIe switch – NIC, PCIe switch – host
  kNic,     ///< NIC – leaf, or NIC – switch of a custom fabric
  kUplink,  ///< leaf – spine, or between switches of a custom fabric, all ports between the two
            ///< together
  kCore,    ///< spine – core, all ports between the two together
};

/// One direction of a cable. Traffic in the other direction does not slow it.
struct Link {
  base::LinkId id{0};
  LinkKind kind = LinkKind::kNvlink;
  base::DeviceId from{0};
  base::DeviceId to{0};
  base::BytesPerSecond bandwidth{0};  ///< what a fault left of it; 0 if dead
  base::Seconds latency{0};

  bool is_dead() const { return bandwidth == base::BytesPerSecond{0}; }
  friend bool operator==(const Link&, const Link&) = default;
};

/// How far two GPUs are apart, nearest first, so that the farthest of several is their maximum.
enum class PathKind {
  kSameDevice,  ///< no link
  kPcie,        ///< PCIe only: a copy between a GPU and its host
  kNvlink,      ///< inside an NVLink domain
  kRail,        ///< through one leaf switch; with rail-optimised wiring: NICs of the same rail
  kCrossRail,   ///< as kRail, after or before NVLink has brought the data to another rail
  kSpine,       ///< through a spine switch, or several switches of a custom fabric
  kCore,        ///< through a core switch, from pod to pod
};

/// The links that a transfer crosses, in order. Empty if both ends are the same device.
struct Route {
  base::DeviceId from{0};
  base::DeviceId to{0};
  std::vector<Link> links;

  PathKind Kind() const;
  /// The smallest bandwidth of the links; absent for an empty route, which nothing limits.
  std::optional<base::BytesPerSecond> Bandwidth() const;
  /// The sum over the links.
  base::Seconds Latency() const;
  bool CrossesDeadLink() const;

  friend bool operator==(const Route&, const Route&) = default;
};

/// How two GPUs lie to each other. Where no link is dead or slow, routes of equal traits have the
/// same kind, bandwidth and latency.
struct RouteTraits {
  PathKind distance = PathKind::kSameDevice;  ///< detours over a spine count as kCrossRail
  /// Node groups of both ends, and their pods if they lie in different ones, else 0.
  int from_group = 0;
  int to_group = 0;
  int from_pod = 0;
  int to_pod = 0;
  friend auto operator<=>(const RouteTraits&, const RouteTraits&) = default;
};

/// What a route minimises, summed over its links: latency, then the number of links, NVLink
/// counting as half of any other. A positive whole number, so that sums are exact.
std::int64_t RoutingCost(const Link& link);

std::string_view NameOf(DeviceKind kind);
std::string_view NameOf(LinkKind kind);
std::string_view NameOf(PathKind kind);

/// For people: "gpu 2.5" is GPU 5 of node 2, "leaf 0.5" leaf switch 5 of leaf group 0, "host 2",
/// "nvswitch 2" that of NVLink domain 2. "spine 1.3" is spine switch 3 of pod 1, "core 3" core
/// switch 3; "spine", "spine 1" and "core" stand for a layer. "switch 3" is number 3 of a custom
/// fabric.
std::string LabelOf(const Device& device);

}  // namespace isthmus::topology
