#pragma once

#include <compare>

#include "base/units.h"
#include "topology/route.h"

namespace isthmus::topology {

/// How the ranks of a group lie in the cluster: all that a collective's cost may depend on.
///
/// Two groups with equal localities cost the same, so folding uses it as a signature. It does not
/// say where the group lies, nor in which order its ranks are.
///
/// A *node* here is an NVLink domain: the nodes of one count together, as NCCL counts them
/// (multi-node NVLink), and so do their NICs.
///
/// Made by Cluster::Locality. Faults are included: a GPU whose way to its NIC is dead counts with
/// the NIC that its traffic takes instead. Figures of NICs and rails are 0 in a group of one node.
struct GroupLocality {
  int num_ranks = 0;
  int num_devices = 0;  ///< fewer than ranks if ranks share a GPU
  int num_nodes = 0;
  int min_ranks_per_node = 0;  ///< over the nodes that have any
  int max_ranks_per_node = 0;
  int num_leaf_groups = 0;
  int num_rails = 0;          ///< distinct NIC indices
  int min_nics_per_node = 0;  ///< distinct NICs used by the group in a node, least over its nodes
  /// How far apart two of the ranks may be: kSameDevice, kNvlink (one node), kRail (one leaf
  /// switch), kCrossRail (one leaf group), kSpine (one pod) or kCore. Detours round dead links
  /// don't count.
  PathKind farthest = PathKind::kSameDevice;
  /// Per GPU and direction, least over the group's GPUs; of the detour to its neighbour for a GPU
  /// whose NVLink is dead. 0 if all nodes have one GPU.
  base::BytesPerSecond slowest_nvlink{0};
  /// Per NIC and direction, least over the NICs used: what it and the links between it and the GPU
  /// (PCIe; NVLink before that on a detour) let through.
  base::BytesPerSecond slowest_nic{0};

  bool is_in_one_nvlink_domain() const { return num_nodes == 1; }

  friend auto operator<=>(const GroupLocality&, const GroupLocality&) = default;
  friend bool operator==(const GroupLocality&, const GroupLocality&) = default;
};

}  // namespace isthmus::topology
