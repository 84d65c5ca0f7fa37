#include "topology/internal/check_fabric.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "topology/internal/check_custom.h"

namespace isthmus::topology::internal {
namespace {

constexpr int kMaxNodes = 1 << 20;

void CheckCount(const std::string& path, const Sourced<int>& count, int max, const char* hint,
                Mistakes& mistakes) {
  if (mistakes.IsMissing(path, count)) return;
  if (count.value < 1 || count.value > max) {
    mistakes.Add(path, fmt::format("found {}", count.value), hint);
  }
  mistakes.CheckSource(path, count.source);
}

void CheckOversubscription(const std::string& path, const Sourced<double>& figure,
                           Mistakes& mistakes) {
  if (mistakes.IsMissing(path, figure)) return;
  if (!(figure.value >= 1 && figure.value <= 1000)) {
    mistakes.Add(path, fmt::format("found {}", figure.value),
                 "use 1 for a non-blocking fabric, 2 for half the uplinks, …");
  }
  mistakes.CheckSource(path, figure.source);
}

void CheckCore(const FabricSpec& fabric, Mistakes& mistakes) {
  const CoreTier& core = *fabric.core;
  CheckCount("fabric.core.leaf_groups_per_pod", core.leaf_groups_per_pod, kMaxNodes,
             "use 1 or more", mistakes);
  CheckCount("fabric.core.num_cores", core.num_cores, kMaxSwitches, "use 1 to 16384", mistakes);
  if (fabric.num_spines.value > 0 && core.num_cores.value % fabric.num_spines.value != 0) {
    mistakes.Add("fabric.core.num_cores",
                 fmt::format("{} is not a multiple of num_spines {}", core.num_cores.value,
                             fabric.num_spines.value),
                 "each spine switch of a pod has as many core switches of its own");
  }
  CheckOversubscription("fabric.core.oversubscription", core.oversubscription, mistakes);
  mistakes.CheckPositive("fabric.core.port_bandwidth", core.port_bandwidth);
  mistakes.CheckLatency("fabric.core.hop_latency", core.hop_latency);
}

void CheckTiers(const FabricSpec& fabric, Mistakes& mistakes) {
  CheckCount("fabric.nodes_per_leaf_group", fabric.nodes_per_leaf_group, kMaxNodes, "use 1 or more",
             mistakes);
  CheckOversubscription("fabric.oversubscription", fabric.oversubscription, mistakes);
  mistakes.CheckPositive("fabric.spine_port_bandwidth", fabric.spine_port_bandwidth);
  mistakes.CheckLatency("fabric.hop_latency", fabric.hop_latency);
  CheckCount("fabric.num_spines", fabric.num_spines, kMaxSwitches, "use 1 to 16384", mistakes);
  if (fabric.core) CheckCore(fabric, mistakes);
}

// What concerns node groups and fabric together.
void CheckLeafGroups(const ClusterSpec& spec, Mistakes& mistakes) {
  const int nodes_per_leaf_group = std::max(spec.fabric.nodes_per_leaf_group.value, 1);
  std::int64_t num_leaves = 0;
  for (const NodeGroup& group : spec.node_groups) {
    const int per_domain = group.nodes_per_nvlink_domain;
    if (per_domain > 1 && nodes_per_leaf_group % per_domain != 0) {
      mistakes.Add(PathOf(group, "nodes_per_nvlink_domain"),
                   fmt::format("{} does not divide the fabric's nodes_per_leaf_group {}",
                               per_domain, nodes_per_leaf_group),
                   "an NVLink domain lies in one leaf group: give the group whole domains");
    }
    num_leaves += (group.num_nodes / nodes_per_leaf_group + 1) *
                  std::int64_t{std::max(group.nics_per_node, 1)};
  }
  const int num_spines = spec.fabric.num_spines.value;
  if (num_leaves * num_spines > kMaxLayerLinks) {
    mistakes.Add("fabric.num_spines",
                 fmt::format("{} spines over about {} leaves", num_spines, num_leaves),
                 fmt::format("at most {} links may join two layers", kMaxLayerLinks));
  }
  if (!spec.fabric.core) return;
  const CoreTier& core = *spec.fabric.core;
  const std::int64_t num_pods = num_leaves / std::max(core.leaf_groups_per_pod.value, 1) + 1;
  if (num_pods * core.num_cores.value > kMaxLayerLinks) {
    mistakes.Add("fabric.core.num_cores",
                 fmt::format("{} cores over up to {} pods", core.num_cores.value, num_pods),
                 fmt::format("at most {} links may join two layers", kMaxLayerLinks));
  }
}

// The spine or core that `to` of a fault names.
void CheckFarEnd(const FabricSpec& fabric, const LinkFault& fault, const std::string& path,
                 Mistakes& mistakes) {
  if (!fault.to) return;
  int first = 0;
  int count = 0;
  if (fault.part == FaultyPart::kUplink) {
    count = fabric.num_spines.value;
  } else if (fault.part == FaultyPart::kCoreLink && fabric.num_spines.value > 0) {
    count = fabric.core->num_cores.value / fabric.num_spines.value;
    first = fault.index * count;
  } else {
    mistakes.Add(path, "only uplinks and core links have several far ends", "leave `to` out");
    return;
  }
  if (*fault.to >= first && *fault.to < first + count) return;
  mistakes.Add(path, fmt::format("no switch {} at the far end", *fault.to),
               fmt::format("it is joined to {} to {}", first, first + count - 1));
}

// How many parts of the kind that a fault may be about a node has, or the leaf group or pod it is
// in.
int NumParts(const NodeGroup& group, const FabricSpec& fabric, FaultyPart part) {
  const bool is_rail_optimised = fabric.wiring == LeafWiring::kRailOptimised;
  switch (part) {
    case FaultyPart::kNvlink:
      return HasNvlink(group) ? group.gpus_per_node : 0;
    case FaultyPart::kPcie:
      return group.gpus_per_node;
    case FaultyPart::kNic:
      return group.nics_per_node;
    case FaultyPart::kCable:
      return fabric.custom ? static_cast<int>(fabric.custom->cables.size()) : 0;
    case FaultyPart::kSwitch:
      return fabric.custom ? static_cast<int>(fabric.custom->switches.size()) : 0;
    default:
      break;
  }
  if (fabric.custom) return 0;  // it has no layers
  switch (part) {
    case FaultyPart::kUplink:
      return is_rail_optimised ? group.nics_per_node : std::min(group.nics_per_node, 1);
    case FaultyPart::kSpine:
      return group.nics_per_node == 0 ? 0 : fabric.num_spines.value;
    case FaultyPart::kCoreLink:
      return group.nics_per_node == 0 || !fabric.core ? 0 : fabric.num_spines.value;
    case FaultyPart::kCore:
      return group.nics_per_node == 0 || !fabric.core ? 0 : fabric.core->num_cores.value;
    default:
      return 0;
  }
}

}  // namespace

bool HasNvlink(const NodeGroup& group) {
  return group.gpus_per_node > 1 || group.nodes_per_nvlink_domain > 1;
}

const NodeGroup* GroupOfNode(const ClusterSpec& spec, std::int64_t node) {
  if (node < 0) return nullptr;
  for (const NodeGroup& group : spec.node_groups) {
    if (node < group.num_nodes) return &group;
    node -= group.num_nodes;
  }
  return nullptr;
}

void CheckFabric(const ClusterSpec& spec, Mistakes& mistakes) {
  const bool has_nics = std::ranges::any_of(
      spec.node_groups, [](const NodeGroup& group) { return group.nics_per_node > 0; });
  if (!has_nics) return;
  if (spec.fabric.custom) {
    CheckCustom(spec, mistakes);
    return;
  }
  CheckTiers(spec.fabric, mistakes);
  CheckLeafGroups(spec, mistakes);
}

void CheckLinkFaults(const ClusterSpec& spec, Mistakes& mistakes) {
  for (std::size_t index = 0; index < spec.link_faults.size(); ++index) {
    const LinkFault& fault = spec.link_faults[index];
    const std::string path = fmt::format("link_faults.{}", index);
    const NodeGroup* group = GroupOfNode(spec, fault.node.value());
    if (group == nullptr) {
      mistakes.Add(path + ".node", fmt::format("there is no node {}", fault.node.value()),
                   "nodes are numbered from 0 over all node groups");
      continue;
    }
    const int num_parts = NumParts(*group, spec.fabric, fault.part);
    if (fault.index < 0 || fault.index >= num_parts) {
      mistakes.Add(path + ".index",
                   fmt::format("found {}, and node {} has {} of these", fault.index,
                               fault.node.value(), num_parts),
                   "parts are numbered from 0");
    } else {
      CheckFarEnd(spec.fabric, fault, path + ".to", mistakes);
    }
    if (!(fault.bandwidth_factor >= 0 && fault.bandwidth_factor <= 1)) {
      mistakes.Add(path + ".bandwidth_factor", fmt::format("found {}", fault.bandwidth_factor),
                   "use the part that is left: 0 for a dead link to 1 for a sound one");
    }
  }
}

}  // namespace isthmus::topology::internal
