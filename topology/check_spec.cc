#include "topology/check_spec.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/internal/check_fabric.h"
#include "topology/internal/mistakes.h"

namespace isthmus::topology {

using internal::HasNvlink;
using internal::Mistakes;
using internal::PathOf;

namespace {

// A cluster of more GPUs is taken for a slip of the pen.
constexpr int kMaxGpus = 1 << 20;
constexpr int kMaxGpusPerNode = 64;

void CheckCounts(const NodeGroup& group, Mistakes& mistakes) {
  if (group.num_nodes < 1 || group.num_nodes > kMaxGpus) {
    mistakes.Add(PathOf(group, "num_nodes"), fmt::format("found {}", group.num_nodes),
                 fmt::format("use 1 to {}", kMaxGpus));
  }
  if (group.gpus_per_node < 1 || group.gpus_per_node > kMaxGpusPerNode) {
    mistakes.Add(PathOf(group, "gpus_per_node"), fmt::format("found {}", group.gpus_per_node),
                 fmt::format("use 1 to {}", kMaxGpusPerNode));
    return;
  }
  const bool divides = group.nics_per_node == 0 ||
                       (group.nics_per_node > 0 && group.gpus_per_node % group.nics_per_node == 0);
  if (!divides) {
    mistakes.Add(PathOf(group, "nics_per_node"),
                 fmt::format("{} does not divide gpus_per_node {}", group.nics_per_node,
                             group.gpus_per_node),
                 "several NICs of one GPU are given as one NIC with the sum of their bandwidths");
  }
  if (group.nodes_per_nvlink_domain < 1 || group.nodes_per_nvlink_domain > kMaxGpus) {
    mistakes.Add(PathOf(group, "nodes_per_nvlink_domain"),
                 fmt::format("found {}", group.nodes_per_nvlink_domain),
                 "use 1, or the nodes that one NVSwitch fabric joins, as 18 of GB200 NVL72");
  }
}

void CheckFigures(const NodeGroup& group, RanksShare ranks_share, Mistakes& mistakes) {
  if (group.gpu.empty()) {
    mistakes.Add(PathOf(group, "gpu"), "no GPU is named", "give a GPU profile, as in h100-sxm");
  }
  mistakes.CheckSource(PathOf(group, "source"), group.source);
  if (ranks_share == RanksShare::kCores) return;  // no links
  mistakes.CheckPositive(PathOf(group, "pcie_bandwidth"), group.pcie_bandwidth);
  mistakes.CheckLatency(PathOf(group, "pcie_latency"), group.pcie_latency);
  if (group.nics_per_node > 0) {
    mistakes.CheckPositive(PathOf(group, "nic_bandwidth"), group.nic_bandwidth);
    mistakes.CheckLatency(PathOf(group, "nic_latency"), group.nic_latency);
  }
  if (!HasNvlink(group)) return;
  if (group.nvlink_bandwidth.value.value() == 0) {
    mistakes.Add(PathOf(group, "nvlink_bandwidth"),
                 "nodes of several GPUs without NVLink are not built yet",
                 "give nvlink_bandwidth, or use gpus_per_node: 1");
    return;
  }
  mistakes.CheckPositive(PathOf(group, "nvlink_bandwidth"), group.nvlink_bandwidth);
  mistakes.CheckLatency(PathOf(group, "nvlink_latency"), group.nvlink_latency);
  // Otherwise GPUs on one PCIe switch would rather talk over it than over NVLink.
  if (group.nvlink_latency.value > group.pcie_latency.value) {
    mistakes.Add(PathOf(group, "nvlink_latency"), "is larger than pcie_latency",
                 "routes take the path of least latency, which has to be NVLink in a node");
  }
}

std::int64_t CheckNodeGroups(const ClusterSpec& spec, Mistakes& mistakes) {
  std::int64_t num_nodes = 0;
  std::int64_t num_gpus = 0;
  std::int64_t num_domains = 0;
  bool lacks_nics = false;
  std::set<std::string> names;
  for (const NodeGroup& group : spec.node_groups) {
    if (group.name.empty() || !names.insert(group.name).second) {
      mistakes.Add(PathOf(group, "name"), group.name.empty() ? "is empty" : "is used twice",
                   "give every node group a name of its own");
    }
    CheckCounts(group, mistakes);
    CheckFigures(group, spec.ranks_share, mistakes);
    num_nodes += group.num_nodes;
    num_gpus += std::int64_t{group.num_nodes} * group.gpus_per_node;
    const int per_domain = std::max(group.nodes_per_nvlink_domain, 1);
    num_domains += (group.num_nodes + per_domain - 1) / per_domain;
    lacks_nics |= group.nics_per_node == 0;
  }
  if (spec.node_groups.empty()) {
    mistakes.Add("node_groups", "is empty", "a cluster has at least one node");
  }
  if (lacks_nics && num_domains > 1) {
    mistakes.Add("node_groups", fmt::format("nics_per_node: 0 in a cluster of {} nodes", num_nodes),
                 "nodes without NICs can't reach each other; give at least one a node");
  }
  if (num_gpus > kMaxGpus) {
    mistakes.Add("node_groups", fmt::format("add up to {} GPUs", num_gpus),
                 fmt::format("at most {} are allowed", kMaxGpus));
  }
  return num_gpus;
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
  for (std::size_t index = 0; index < spec.slow_gpus.size(); ++index) {
    const SlowGpu& slow = spec.slow_gpus[index];
    const std::string path = fmt::format("slow_gpus.{}", index);
    const int gpu = slow.device.value();
    if (!is_gpu(slow.device)) {
      mistakes.Add(path + ".gpu", fmt::format("there is no GPU {}", gpu), range);
    }
    if (!seen.insert(slow.device).second) {
      mistakes.Add(path + ".gpu", fmt::format("GPU {} is named twice", gpu),
                   "give each slow GPU one speed_factor");
    }
    if (!(slow.speed_factor > 0 && slow.speed_factor <= 1)) {
      mistakes.Add(path + ".speed_factor", fmt::format("found {}", slow.speed_factor),
                   "use more than 0 and at most 1; 0.9 takes 1/0.9 of the time");
    }
  }
  for (std::size_t rank = 0; rank < spec.rank_devices.size(); ++rank) {
    if (is_gpu(spec.rank_devices[rank])) continue;
    mistakes.Add(fmt::format("rank_devices.{}", rank),
                 fmt::format("there is no GPU {}", spec.rank_devices[rank].value()), range);
    break;  // the others are likely off by the same amount
  }
}

void CheckFraction(double value, const std::string& path, Mistakes& mistakes) {
  if (value >= 0 && value <= 1) return;
  mistakes.Add(path, fmt::format("found {}", value), "use 0 to 1; 0.03 is 3 %");
}

void CheckVariation(const TimeVariation& variation, const std::string& path, Mistakes& mistakes) {
  CheckFraction(variation.deviation, path + ".deviation", mistakes);
  if (!variation.stall) return;
  CheckFraction(variation.stall->probability, path + ".stall.probability", mistakes);
  const base::Seconds time = variation.stall->time;
  if (time >= base::Seconds{0} && time <= kMaxStall) return;
  mistakes.Add(path + ".stall.time", fmt::format("found {} s", time.value()),
               fmt::format("use 0 s to {} s", kMaxStall.value()));
}

void CheckJitter(const ClusterSpec& spec, Mistakes& mistakes) {
  if (!spec.jitter) return;
  CheckVariation(spec.jitter->compute, "jitter.compute", mistakes);
  CheckVariation(spec.jitter->communication, "jitter.communication", mistakes);
  if (spec.ranks_share == RanksShare::kNothing) return;
  mistakes.Add("jitter", "is given although all ranks share one device",
               "ranks on one device delay each other already; leave jitter out, or use a cluster "
               "with a GPU per rank");
}

}  // namespace

std::vector<SpecMistake> MistakesOf(const ClusterSpec& spec) {
  Mistakes mistakes;
  if (spec.name.empty()) mistakes.Add("name", "is empty", "give the cluster a name");
  const std::int64_t num_gpus = CheckNodeGroups(spec, mistakes);
  internal::CheckFabric(spec, mistakes);
  internal::CheckLinkFaults(spec, mistakes);
  CheckGpus(spec, num_gpus, mistakes);
  CheckSharing(spec, num_gpus, mistakes);
  CheckJitter(spec, mistakes);
  return std::move(mistakes).Take();
}

}  // namespace isthmus::topology
