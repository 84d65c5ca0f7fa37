#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/cluster_spec.h"

namespace isthmus::topology {

/// A fabric as ibnetdiscover (infiniband-diags) found it, made a custom fabric.
///
/// Hosts are nodes in the natural order of their names (gpu-9 before gpu-10), and their channel
/// adapters' ports NICs in that of theirs. A host that lacks a NIC others have has lost it: it
/// hangs by a dead cable from the switch of its neighbour's. Switches keep their names without
/// firmware marks ("MF0;leaf-1:MQM9700/U1" is leaf-1) where that tells them apart.
struct DiscoveredFabric {
  CustomFabric fabric;
  std::vector<std::string> hosts;     ///< by node
  std::vector<std::string> nics;      ///< by index: "mlx5_0"
  std::vector<LinkFault> lost_nics;   ///< by node and index
  std::vector<std::string> left_out;  ///< descriptions of adapters that aren't NICs of a node
};

/// Reads what ibnetdiscover prints without options. `nics` says which adapters count, as a shell
/// pattern for their descriptions: "gpu-* mlx5_[0-7]"; empty: all but switches' own (aggregation
/// nodes). A cable's bandwidth is what its ends have agreed on; it knows no latencies, so cables
/// have those of the NIC and of FabricSpec's hop.
///
/// `file` is its name, in mistakes and sources. Throws base::ScenarioError with all mistakes: lines
/// that can't be read, no NIC left, NICs joined to NICs, a host with fewer than half of the NICs
/// that others have.
DiscoveredFabric ReadIbnetdiscover(std::string_view text, const std::string& file,
                                   const std::string& nics = {});

/// The cluster with this fabric instead of its own, and as many nodes as there are hosts.
///
/// Throws base::Error unless it has one node group, whose GPUs can share the NICs that were found.
ClusterSpec WithFabric(ClusterSpec cluster, const DiscoveredFabric& found, const std::string& file);

}  // namespace isthmus::topology
