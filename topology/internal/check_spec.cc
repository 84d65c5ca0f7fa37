#include "topology/internal/check_spec.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::topology::internal {
namespace {

// The mistakes found so far, each as "where: what" with a hint on how to put it right.
class Mistakes {
 public:
  explicit Mistakes(std::string cluster) : cluster_(std::move(cluster)) {}

  void Add(const std::string& where, const std::string& what, const std::string& hint) {
    text_ += fmt::format("{}cluster {}: {}: {}\n  hint: {}", text_.empty() ? "" : "\n", cluster_,
                         where, what, hint);
  }

  void CheckPositive(const std::string& where, const Sourced<base::BytesPerSecond>& figure) {
    const double value = figure.value.value();
    if (!std::isfinite(value) || value <= 0) {
      Add(where, fmt::format("{} B/s is not a bandwidth", value), "give it as in 450 GB/s");
    }
    CheckSource(where, figure.source);
  }

  void CheckLatency(const std::string& where, const Sourced<base::Seconds>& figure) {
    const double value = figure.value.value();
    if (!(value >= 0 && value <= 1)) {
      Add(where, fmt::format("{} s is not the latency of a link", value), "give it as in 0.5 us");
    }
    CheckSource(where, figure.source);
  }

  void CheckSource(const std::string& where, const std::string& source) {
    if (source.empty()) {
      Add(where, "has no source", "name the data sheet or measurement, or say \"assumed: why\"");
    }
  }

  void Throw() const {
    if (!text_.empty()) throw base::Error(text_);
  }

 private:
  std::string cluster_;
  std::string text_;
};

std::string Where(const NodeGroup& group, const char* key) {
  return fmt::format("node group {}: {}", group.name, key);
}

void CheckCounts(const NodeGroup& group, Mistakes& mistakes) {
  if (group.num_nodes < 1 || group.num_nodes > kMaxGpus) {
    mistakes.Add(Where(group, "num_nodes"), fmt::format("found {}", group.num_nodes),
                 fmt::format("use 1 to {}", kMaxGpus));
  }
  if (group.gpus_per_node < 1 || group.gpus_per_node > kMaxGpusPerNode) {
    mistakes.Add(Where(group, "gpus_per_node"), fmt::format("found {}", group.gpus_per_node),
                 fmt::format("use 1 to {}", kMaxGpusPerNode));
    return;
  }
  const bool divides = group.nics_per_node == 0 ||
                       (group.nics_per_node > 0 && group.gpus_per_node % group.nics_per_node == 0);
  if (!divides) {
    mistakes.Add(Where(group, "nics_per_node"),
                 fmt::format("{} does not divide gpus_per_node {}", group.nics_per_node,
                             group.gpus_per_node),
                 "several NICs of one GPU are given as one NIC with the sum of their bandwidths");
  }
}

void CheckFigures(const NodeGroup& group, RanksShare ranks_share, Mistakes& mistakes) {
  if (group.gpu.empty()) {
    mistakes.Add(Where(group, "gpu"), "no GPU is named", "give a GPU profile, as in h100-sxm");
  }
  mistakes.CheckSource(Where(group, "source"), group.source);
  if (ranks_share == RanksShare::kCores) return;  // no links
  mistakes.CheckPositive(Where(group, "pcie_bandwidth"), group.pcie_bandwidth);
  mistakes.CheckLatency(Where(group, "pcie_latency"), group.pcie_latency);
  if (group.nics_per_node > 0) {
    mistakes.CheckPositive(Where(group, "nic_bandwidth"), group.nic_bandwidth);
    mistakes.CheckLatency(Where(group, "nic_latency"), group.nic_latency);
  }
  if (group.gpus_per_node == 1) return;
  if (group.nvlink_bandwidth.value.value() == 0) {
    mistakes.Add(Where(group, "nvlink_bandwidth"),
                 "nodes of several GPUs without NVLink are not built yet",
                 "give nvlink_bandwidth, or use gpus_per_node: 1");
    return;
  }
  mistakes.CheckPositive(Where(group, "nvlink_bandwidth"), group.nvlink_bandwidth);
  mistakes.CheckLatency(Where(group, "nvlink_latency"), group.nvlink_latency);
  // Otherwise GPUs on one PCIe switch would rather talk over it than over NVLink.
  if (group.nvlink_latency.value > group.pcie_latency.value) {
    mistakes.Add(Where(group, "nvlink_latency"), "is larger than pcie_latency",
                 "routes take the path of least latency, which has to be NVLink in a node");
  }
}

std::int64_t CheckNodeGroups(const ClusterSpec& spec, Mistakes& mistakes) {
  std::int64_t num_nodes = 0;
  std::int64_t num_gpus = 0;
  bool lacks_nics = false;
  std::set<std::string> names;
  for (const NodeGroup& group : spec.node_groups) {
    if (group.name.empty() || !names.insert(group.name).second) {
      mistakes.Add(Where(group, "name"), group.name.empty() ? "is empty" : "is used twice",
                   "give every node group a name of its own");
    }
    CheckCounts(group, mistakes);
    CheckFigures(group, spec.ranks_share, mistakes);
    num_nodes += group.num_nodes;
    num_gpus += std::int64_t{group.num_nodes} * group.gpus_per_node;
    lacks_nics |= group.nics_per_node == 0;
  }
  if (spec.node_groups.empty()) {
    mistakes.Add("node_groups", "is empty", "a cluster has at least one node");
  }
  if (lacks_nics && num_nodes > 1) {
    mistakes.Add("nics_per_node", fmt::format("0 in a cluster of {} nodes", num_nodes),
                 "nodes without NICs can't reach each other; give at least one a node");
  }
  if (num_gpus > kMaxGpus) {
    mistakes.Add("node_groups", fmt::format("add up to {} GPUs", num_gpus),
                 fmt::format("at most {} are allowed", kMaxGpus));
  }
  return num_gpus;
}

void CheckFabric(const FabricSpec& fabric, Mistakes& mistakes) {
  if (fabric.nodes_per_leaf_group.value < 1) {
    mistakes.Add("fabric: nodes_per_leaf_group",
                 fmt::format("found {}", fabric.nodes_per_leaf_group.value), "use 1 or more");
  }
  mistakes.CheckSource("fabric: nodes_per_leaf_group", fabric.nodes_per_leaf_group.source);
  const double oversubscription = fabric.oversubscription.value;
  if (!(oversubscription >= 1 && oversubscription <= 1000)) {
    mistakes.Add("fabric: oversubscription", fmt::format("found {}", oversubscription),
                 "use 1 for a non-blocking fabric, 2 for half the uplinks, …");
  }
  mistakes.CheckSource("fabric: oversubscription", fabric.oversubscription.source);
  mistakes.CheckPositive("fabric: spine_port_bandwidth", fabric.spine_port_bandwidth);
  mistakes.CheckLatency("fabric: hop_latency", fabric.hop_latency);
}

const NodeGroup* GroupOfNode(const ClusterSpec& spec, std::int64_t node) {
  if (node < 0) return nullptr;
  for (const NodeGroup& group : spec.node_groups) {
    if (node < group.num_nodes) return &group;
    node -= group.num_nodes;
  }
  return nullptr;
}

void CheckLinkFaults(const ClusterSpec& spec, Mistakes& mistakes) {
  for (std::size_t index = 0; index < spec.link_faults.size(); ++index) {
    const LinkFault& fault = spec.link_faults[index];
    const std::string where = fmt::format("link_faults[{}]", index);
    const NodeGroup* group = GroupOfNode(spec, fault.node.value());
    if (group == nullptr) {
      mistakes.Add(where, fmt::format("there is no node {}", fault.node.value()),
                   "nodes are numbered from 0 over all node groups");
      continue;
    }
    const int num_parts = NumParts(*group, spec.fabric.wiring, fault.part);
    if (fault.index < 0 || fault.index >= num_parts) {
      mistakes.Add(
          where,
          fmt::format("index {} of {} on node {}", fault.index, num_parts, fault.node.value()),
          "parts of a node are numbered from 0");
    }
    if (!(fault.bandwidth_factor >= 0 && fault.bandwidth_factor <= 1)) {
      mistakes.Add(where, fmt::format("bandwidth_factor {}", fault.bandwidth_factor),
                   "use the part that is left: 0 for a dead link to 1 for a sound one");
    }
  }
}

void CheckSharing(const ClusterSpec& spec, std::int64_t num_gpus, Mistakes& mistakes) {
  if (spec.cores < 0 || (spec.cores > 0 && spec.ranks_share != RanksShare::kCores)) {
    mistakes.Add("cores", fmt::format("found {}", spec.cores),
                 "only ranks_share: cores has cores, 1 or more");
  }
  if (spec.ranks_share == RanksShare::kNothing) return;
  if (num_gpus != 1) {
    mistakes.Add("ranks_share", fmt::format("the cluster has {} devices to share", num_gpus),
                 "give one node group of one node with gpus_per_node: 1");
  }
  if (!spec.rank_devices.empty()) {
    mistakes.Add("rank_devices", "is given although all ranks share one device",
                 "leave it or ranks_share out");
  }
}

void CheckGpus(const ClusterSpec& spec, std::int64_t num_gpus, Mistakes& mistakes) {
  const auto is_gpu = [num_gpus](base::DeviceId id) {
    return id.value() >= 0 && id.value() < num_gpus;
  };
  const std::string range = fmt::format("the cluster has GPUs 0 to {}", num_gpus - 1);
  std::set<base::DeviceId> seen;
  for (const SlowGpu& slow : spec.slow_gpus) {
    const std::string where = fmt::format("slow_gpus: GPU {}", slow.device.value());
    if (!is_gpu(slow.device)) mistakes.Add(where, "does not exist", range);
    if (!seen.insert(slow.device).second) {
      mistakes.Add(where, "is named twice", "give each slow GPU one speed_factor");
    }
    if (!(slow.speed_factor > 0 && slow.speed_factor <= 1)) {
      mistakes.Add(where, fmt::format("speed_factor {}", slow.speed_factor),
                   "use more than 0 and at most 1; 0.9 takes 1/0.9 of the time");
    }
  }
  for (std::size_t rank = 0; rank < spec.rank_devices.size(); ++rank) {
    if (is_gpu(spec.rank_devices[rank])) continue;
    mistakes.Add(fmt::format("rank_devices[{}]", rank),
                 fmt::format("there is no GPU {}", spec.rank_devices[rank].value()), range);
    break;  // the others are likely off by the same amount
  }
}

}  // namespace

int NumParts(const NodeGroup& group, LeafWiring wiring, FaultyPart part) {
  switch (part) {
    case FaultyPart::kNvlink:
      return group.gpus_per_node > 1 ? group.gpus_per_node : 0;
    case FaultyPart::kPcie:
      return group.gpus_per_node;
    case FaultyPart::kNic:
      return group.nics_per_node;
    case FaultyPart::kUplink:
      return group.nics_per_node == 0 || wiring == LeafWiring::kRailOptimised ? group.nics_per_node
                                                                              : 1;
  }
  return 0;
}

void CheckSpec(const ClusterSpec& spec) {
  Mistakes mistakes(spec.name.empty() ? "(unnamed)" : spec.name);
  if (spec.name.empty()) mistakes.Add("name", "is empty", "give the cluster a name");
  const std::int64_t num_gpus = CheckNodeGroups(spec, mistakes);
  bool has_nics = false;
  for (const NodeGroup& group : spec.node_groups) has_nics |= group.nics_per_node > 0;
  if (has_nics) CheckFabric(spec.fabric, mistakes);
  CheckLinkFaults(spec, mistakes);
  CheckGpus(spec, num_gpus, mistakes);
  CheckSharing(spec, num_gpus, mistakes);
  mistakes.Throw();
}

}  // namespace isthmus::topology::internal
