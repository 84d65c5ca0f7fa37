#include "topology/describe.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "topology/graph.h"
#include "topology/internal/description.h"

namespace isthmus::topology {

using internal::Numbered;
using internal::Row;
using internal::Sources;

namespace {

std::string DescribeHost(const ClusterSpec& spec, Sources& sources) {
  const NodeGroup& host = spec.node_groups.front();
  const std::string cores = spec.cores > 0
                                ? base::Counted(spec.cores, "core", "cores")
                                : std::string("as many cores as its profile was measured on");
  return fmt::format("cluster {}: one machine with {}, shared by up to {} ranks\n", spec.name,
                     cores, kMaxSharingRanks) +
         Row("profile", fmt::format("{} {}", host.gpu, sources.Mark(host.source)));
}

std::string DescribeGroup(const NodeGroup& group, int first_node, int first_gpu, Sources& sources) {
  std::string text = fmt::format("\nnode group {}: {}, {}\n", group.name,
                                 Numbered("node", first_node, group.num_nodes),
                                 Numbered("GPU", first_gpu, group.num_nodes * group.gpus_per_node));
  text += Row("a node", fmt::format("{} x {}, {} {}", group.gpus_per_node, group.gpu,
                                    base::Counted(group.nics_per_node, "NIC", "NICs"),
                                    sources.Mark(group.source)));
  if (group.nodes_per_nvlink_domain > 1) {
    text += Row(
        "an NVLink domain",
        fmt::format("{}, {} {}", base::Counted(group.nodes_per_nvlink_domain, "node", "nodes"),
                    base::Counted(std::int64_t{group.nodes_per_nvlink_domain} * group.gpus_per_node,
                                  "GPU", "GPUs"),
                    sources.Mark(group.source)));
  }
  if (group.gpus_per_node > 1 || group.nodes_per_nvlink_domain > 1) {
    text += Row("NVLink of a GPU", sources.Figures(group.nvlink_bandwidth, group.nvlink_latency));
  }
  text += Row("PCIe of a GPU", sources.Figures(group.pcie_bandwidth, group.pcie_latency));
  if (group.nics_per_node > 0) {
    text += Row("NIC", sources.Figures(group.nic_bandwidth, group.nic_latency));
  }
  return text;
}

// The first GPU that lies in each kind of way to the first one.
std::vector<base::DeviceId> CustomExamples(const Cluster& cluster) {
  std::vector<base::DeviceId> examples;
  std::set<PathKind> kinds;
  for (base::DeviceId gpu{0}; gpu.value() < cluster.num_gpus(); ++gpu) {
    const std::optional<Route> route = cluster.FindRoute(base::DeviceId{0}, gpu);
    if (route && kinds.insert(route->Kind()).second) examples.push_back(gpu);
  }
  return examples;
}

// GPUs that lie in all kinds of ways to the first: those of its node, and the first node of what
// comes next: the next node, NVLink domain, leaf group and pod.
std::vector<base::DeviceId> Examples(const Cluster& cluster) {
  const base::DeviceId first{0};
  const auto pod_of = [&cluster](base::DeviceId gpu) {
    return cluster.PodOfLeafGroup(cluster.DeviceAt(gpu).leaf_group.value());
  };
  if (cluster.spec().fabric.custom) return CustomExamples(cluster);
  std::vector<base::DeviceId> examples;
  std::set<base::NodeId> nodes;
  int found = 0;  // the farthest so far: another node, domain, leaf group, pod
  for (base::DeviceId gpu = first; gpu.value() < cluster.num_gpus(); ++gpu) {
    const base::NodeId node = cluster.NodeOf(gpu);
    const Device device = cluster.DeviceAt(gpu);
    int distance = node == cluster.NodeOf(first) ? 0 : 1;
    if (device.domain != cluster.DeviceAt(first).domain) distance = 2;
    if (device.leaf_group != cluster.DeviceAt(first).leaf_group) distance = 3;
    if (pod_of(gpu) != pod_of(first)) distance = 4;
    if (distance > found) nodes.insert(node);
    found = std::max(found, distance);
    if (distance == 0 || nodes.contains(node)) examples.push_back(gpu);
  }
  return examples;
}

std::string DescribePaths(const Cluster& cluster) {
  std::string text = "\nkinds of paths between GPUs, nearest first\n";
  const base::DeviceId first{0};
  const std::vector<base::DeviceId> examples = Examples(cluster);
  for (const PathKind kind : {PathKind::kNvlink, PathKind::kRail, PathKind::kCrossRail,
                              PathKind::kSpine, PathKind::kCore}) {
    for (const base::DeviceId gpu : examples) {
      const std::optional<Route> route = cluster.FindRoute(first, gpu);
      if (!route || route->Kind() != kind) continue;
      text += Row(NameOf(kind), fmt::format("{:>9}      {:>8}   {} links, as GPU 0 to {}",
                                            base::FormatRate(route->Bandwidth().value()),
                                            base::FormatSeconds(route->Latency()),
                                            route->links.size(), gpu.value()));
      break;
    }
  }
  return cluster.num_gpus() > 1 ? text : "";
}

std::string FarEnd(const LinkFault& fault, std::string_view kind) {
  return fault.to ? fmt::format(" to {} switch {}", kind, *fault.to) : std::string();
}

std::string NameOf(const LinkFault& fault) {
  switch (fault.part) {
    case FaultyPart::kNvlink:
      return fmt::format("NVLink of local GPU {}", fault.index);
    case FaultyPart::kPcie:
      return fmt::format("PCIe of local GPU {}", fault.index);
    case FaultyPart::kNic:
      return fmt::format("NIC {}", fault.index);
    case FaultyPart::kUplink:
      return fmt::format("uplink of leaf switch {}{}", fault.index, FarEnd(fault, "spine"));
    case FaultyPart::kCoreLink:
      return fmt::format("core link of spine switch {}{}", fault.index, FarEnd(fault, "core"));
    case FaultyPart::kSpine:
      return fmt::format("spine switch {} of the node's pod", fault.index);
    case FaultyPart::kCore:
      return fmt::format("core switch {}", fault.index);
    case FaultyPart::kCable:
      return fmt::format("cable {} of the custom fabric", fault.index);
    case FaultyPart::kSwitch:
      return fmt::format("switch {} of the custom fabric", fault.index);
  }
  return {};
}

std::string DescribeFaults(const Cluster& cluster) {
  const ClusterSpec& spec = cluster.spec();
  if (spec.link_faults.empty() && spec.slow_gpus.empty() && !spec.jitter) return "\nfaults: none\n";
  std::string text = "\nfaults\n";
  for (const LinkFault& fault : spec.link_faults) {
    text += Row(fmt::format("node {}", fault.node.value()), DescribeFault(fault));
  }
  for (const SlowGpu& slow : spec.slow_gpus) {
    text +=
        Row(fmt::format("GPU {}", slow.device.value()),
            fmt::format("computes at {} of its speed", base::FormatFraction(slow.speed_factor)));
  }
  if (spec.jitter) text += Row("jitter", DescribeJitter(*spec.jitter));
  return text;
}

std::string DescribeVariation(const TimeVariation& variation) {
  std::vector<std::string> parts;
  if (variation.deviation > 0) {
    const bool lognormal = variation.distribution == TimeVariation::Distribution::kLognormal;
    parts.push_back(fmt::format("{}, deviation {}", lognormal ? "lognormal" : "exponential",
                                base::FormatFraction(variation.deviation)));
  }
  if (variation.stall) {
    parts.push_back(fmt::format("stalls of {} with probability {}",
                                base::FormatSeconds(variation.stall->time),
                                variation.stall->probability));
  }
  return parts.empty() ? "steady" : fmt::format("{}", fmt::join(parts, ", "));
}

// All but the largest island.
std::vector<int> CutOff(const std::vector<std::vector<base::DeviceId>>& islands) {
  std::vector<int> gpus;
  for (std::size_t index = 1; index < islands.size(); ++index) {
    for (const base::DeviceId gpu : islands[index]) gpus.push_back(gpu.value());
  }
  std::ranges::sort(gpus);
  return gpus;
}

std::string DescribeConnectivity(const Cluster& cluster) {
  const ClusterGraph graph(cluster);
  const auto islands = graph.GpuIslands();
  std::string text =
      fmt::format("graph: {}, {}; ", base::Counted(graph.num_devices(), "device", "devices"),
                  base::Counted(graph.num_live_links(), "directed link", "directed links"));
  if (islands.size() == 1) return text + "every GPU reaches every other\n";
  return text + "cut off are GPUs " + base::FormatRanges(CutOff(islands)) + "\n";
}

}  // namespace

std::string LabelOf(const Cluster& cluster, base::DeviceId device) {
  const Device facts = cluster.DeviceAt(device);
  if (facts.kind != DeviceKind::kSwitch) return LabelOf(facts);
  return cluster.spec().fabric.custom->switches[static_cast<std::size_t>(facts.index)];
}

std::string DescribeFault(const LinkFault& fault) {
  return fmt::format("{}: {}", NameOf(fault),
                     fault.bandwidth_factor == 0
                         ? "dead"
                         : base::FormatFraction(fault.bandwidth_factor) + " of its bandwidth");
}

std::string DescribeJitter(const Jitter& jitter) {
  return fmt::format("seed {}; compute: {}; communication: {}", jitter.seed,
                     DescribeVariation(jitter.compute), DescribeVariation(jitter.communication));
}

base::BytesPerSecond Bisection(const Cluster& cluster) {
  if (cluster.num_nodes() == 1) return base::BytesPerSecond{0};
  const auto sum_of = [&cluster](DeviceKind kind, LinkKind link_kind) {
    base::BytesPerSecond sum{0};
    for (int number = 0; number < cluster.CountOf(kind); ++number) {
      const base::DeviceId device = cluster.DeviceNumbered(kind, number);
      for (const base::LinkId id : cluster.LinksFrom(device)) {
        const Link link = cluster.LinkAt(id);
        if (link.kind == link_kind && link.from == device) sum += link.bandwidth;
      }
    }
    return sum;
  };
  base::BytesPerSecond least = sum_of(DeviceKind::kNic, LinkKind::kNic);
  if (cluster.num_leaf_groups() > 1) {
    least = std::min(least, sum_of(DeviceKind::kLeaf, LinkKind::kUplink));
  }
  if (cluster.num_pods() > 1) {
    least = std::min(least, sum_of(DeviceKind::kCore, LinkKind::kCore));
  }
  return least / 2;
}

std::string DescribeCluster(const Cluster& cluster) {
  Sources sources;
  if (cluster.spec().ranks_share == RanksShare::kCores) {
    const std::string host = DescribeHost(cluster.spec(), sources);
    return host + sources.List();
  }
  std::string text = fmt::format("cluster {}: {}, {}\n", cluster.spec().name,
                                 base::Counted(cluster.num_nodes(), "node", "nodes"),
                                 base::Counted(cluster.num_gpus(), "GPU", "GPUs"));
  if (!cluster.spec().rank_devices.empty()) {
    text += fmt::format("ranks: {}, placed by the cluster's own list\n", cluster.num_ranks());
  }
  if (cluster.spec().ranks_share == RanksShare::kGpu) {
    text += fmt::format("ranks: up to {} processes share the GPU\n", cluster.num_ranks());
  }
  int first_node = 0;
  int first_gpu = 0;
  for (const NodeGroup& group : cluster.spec().node_groups) {
    text += DescribeGroup(group, first_node, first_gpu, sources);
    first_node += group.num_nodes;
    first_gpu += group.num_nodes * group.gpus_per_node;
  }
  text += internal::DescribeFabric(cluster, sources);
  text += DescribePaths(cluster);
  text += DescribeFaults(cluster) + DescribeConnectivity(cluster);
  return text + sources.List();
}

}  // namespace isthmus::topology
