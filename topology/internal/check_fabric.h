#pragma once

#include <cstdint>

#include "topology/cluster_spec.h"
#include "topology/internal/mistakes.h"

namespace isthmus::topology::internal {

/// Switches of a layer, and links between two layers, each switch being one: what ids have room
/// for.
inline constexpr int kMaxSwitches = 1 << 14;
inline constexpr std::int64_t kMaxLayerLinks = 1 << 26;

/// Whether the group's GPUs have NVLink: they are not alone in their NVLink domains.
bool HasNvlink(const NodeGroup& group);

/// The group of a node, by its number in the cluster; null if there is no such node.
const NodeGroup* GroupOfNode(const ClusterSpec& spec, std::int64_t node);

/// The mistakes of the fabric, if there are NICs, and of what it is to join.
void CheckFabric(const ClusterSpec& spec, Mistakes& mistakes);

void CheckLinkFaults(const ClusterSpec& spec, Mistakes& mistakes);

}  // namespace isthmus::topology::internal
