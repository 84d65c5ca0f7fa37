#include "tests/support/random_cluster.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "topology/cluster.h"

namespace isthmus::tests {

using base::RandomStream;
using topology::ClusterSpec;
using topology::FaultyPart;
using topology::LeafWiring;
using topology::NodeGroup;
using topology::Sourced;

int Between(RandomStream& random, int low, int high) {
  return static_cast<int>(random.UniformInt(low, high));
}

namespace {

Sourced<base::Seconds> RandomLatency(RandomStream& random, int low_ns, int high_ns) {
  return {base::Seconds{Between(random, low_ns, high_ns) * 1e-9}, "random"};
}

Sourced<base::BytesPerSecond> RandomBandwidth(RandomStream& random) {
  return {base::BytesPerSecond{Between(random, 1, 500) * 1e9}, "random"};
}

NodeGroup RandomGroup(RandomStream& random, int index, int nodes_per_nvlink_domain) {
  constexpr std::array kGpus = {1, 2, 4, 8};
  NodeGroup group;
  group.name = "group" + std::string(1, static_cast<char>('0' + index));
  group.num_nodes = Between(random, 1, 6);
  group.gpus_per_node = random.Pick<int>(kGpus);
  group.nics_per_node = group.gpus_per_node;
  while (group.nics_per_node > 1 && random.Chance(0.3)) group.nics_per_node /= 2;
  group.nodes_per_nvlink_domain = nodes_per_nvlink_domain;
  group.gpu = "gpu";
  group.source = "random";
  group.nvlink_bandwidth = RandomBandwidth(random);
  group.nvlink_latency = RandomLatency(random, 0, 300);
  group.pcie_bandwidth = RandomBandwidth(random);
  group.pcie_latency = RandomLatency(random, 300, 500);
  group.nic_bandwidth = RandomBandwidth(random);
  group.nic_latency = RandomLatency(random, 0, 900);
  return group;
}

topology::CoreTier RandomCore(RandomStream& random, int num_spines) {
  topology::CoreTier core;
  core.leaf_groups_per_pod = {Between(random, 1, 3), "random"};
  core.num_cores = {num_spines * Between(random, 1, 3), "random"};
  core.oversubscription = {1.0 + Between(random, 0, 3), "random"};
  core.port_bandwidth = RandomBandwidth(random);
  core.hop_latency = RandomLatency(random, 0, 500);
  return core;
}

// Of a layer's switches one, or all.
std::optional<int> OneOrAll(RandomStream& random, int first, int count) {
  if (random.Chance(0.3)) return std::nullopt;
  return Between(random, first, first + count - 1);
}

}  // namespace

ClusterSpec RandomCluster(RandomStream& random) {
  ClusterSpec spec;
  spec.name = "random";
  const int per_domain = random.Chance(0.3) ? Between(random, 2, 3) : 1;
  const int num_groups = Between(random, 1, 3);
  for (int index = 0; index < num_groups; ++index) {
    spec.node_groups.push_back(RandomGroup(random, index, random.Chance(0.7) ? per_domain : 1));
  }
  topology::FabricSpec& fabric = spec.fabric;
  fabric.wiring = random.Chance(0.7) ? LeafWiring::kRailOptimised : LeafWiring::kShared;
  fabric.nodes_per_leaf_group = {per_domain * Between(random, 1, per_domain == 1 ? 4 : 2),
                                 "random"};
  fabric.oversubscription = {1.0 + Between(random, 0, 3), "random"};
  fabric.spine_port_bandwidth = RandomBandwidth(random);
  fabric.hop_latency = RandomLatency(random, 0, 500);
  if (random.Chance(0.6)) fabric.num_spines = {Between(random, 1, 4), "random"};
  if (random.Chance(0.5)) fabric.core = RandomCore(random, fabric.num_spines.value);
  if (random.Chance(0.5)) fabric.ecmp = topology::Ecmp{random.Next() >> 1U};
  return spec;
}

void AddFaults(ClusterSpec& spec, RandomStream& random, int count, double dead) {
  const int num_spines = spec.fabric.num_spines.value;
  const auto& custom = spec.fabric.custom;
  const int num_cores = spec.fabric.core ? spec.fabric.core->num_cores.value : 0;
  for (int number = 0; number < count; ++number) {
    const auto group_index = Between(random, 0, static_cast<int>(spec.node_groups.size()) - 1);
    int node = 0;
    for (int index = 0; index < group_index; ++index) {
      node += spec.node_groups[static_cast<std::size_t>(index)].num_nodes;
    }
    const NodeGroup& group = spec.node_groups[static_cast<std::size_t>(group_index)];
    topology::LinkFault fault;
    fault.node = base::NodeId{node + Between(random, 0, group.num_nodes - 1)};
    fault.bandwidth_factor = random.Chance(dead) ? 0 : random.UniformReal();
    fault.part = static_cast<FaultyPart>(Between(random, 0, num_cores > 0 ? 6 : 3));
    if (custom && fault.part >= FaultyPart::kUplink) {
      fault.part = random.Chance(0.7) ? FaultyPart::kCable : FaultyPart::kSwitch;
    }
    int num_parts = group.gpus_per_node;
    switch (fault.part) {
      case FaultyPart::kNvlink:
        if (group.gpus_per_node == 1 && group.nodes_per_nvlink_domain == 1) continue;
        break;
      case FaultyPart::kPcie:
        break;
      case FaultyPart::kNic:
        num_parts = group.nics_per_node;
        break;
      case FaultyPart::kUplink:
        num_parts = spec.fabric.wiring == LeafWiring::kShared ? 1 : group.nics_per_node;
        fault.to = OneOrAll(random, 0, num_spines);
        break;
      case FaultyPart::kCoreLink:
      case FaultyPart::kSpine:
        num_parts = num_spines;
        break;
      case FaultyPart::kCore:
        num_parts = num_cores;
        break;
      case FaultyPart::kCable:
        num_parts = static_cast<int>(custom->cables.size());
        break;
      case FaultyPart::kSwitch:
        num_parts = static_cast<int>(custom->switches.size());
        break;
    }
    fault.index = Between(random, 0, num_parts - 1);
    if (fault.part == FaultyPart::kCoreLink) {
      const int over_it = num_cores / num_spines;
      fault.to = OneOrAll(random, fault.index * over_it, over_it);
    }
    spec.link_faults.push_back(fault);
  }
}

ClusterSpec AsCustom(ClusterSpec spec) {
  const topology::Cluster cluster(spec);
  topology::CustomFabric custom;
  const auto name_of = [&cluster](base::DeviceId id) {
    std::string name = topology::LabelOf(cluster.DeviceAt(id));
    return name;
  };
  for (base::DeviceId id{0}; id.value() < cluster.num_devices(); ++id) {
    const topology::DeviceKind kind = cluster.DeviceAt(id).kind;
    if (kind >= topology::DeviceKind::kLeaf) custom.switches.push_back(name_of(id));
    if (kind < topology::DeviceKind::kNic || kind == topology::DeviceKind::kHost) continue;
    for (const base::LinkId link_id : cluster.LinksFrom(id)) {
      const topology::Link link = cluster.LinkAt(link_id);
      const bool is_up = link_id.value() % 2 == 0;  // each cable once, by its way up
      if (!is_up || link.kind == topology::LinkKind::kPcie) continue;
      custom.cables.push_back({.from = name_of(link.from),
                               .to = name_of(link.to),
                               .bandwidth = {link.bandwidth, "test"},
                               .latency = {link.latency, "test"}});
    }
  }
  topology::FabricSpec fabric;  // without layers
  fabric.spine_port_bandwidth = spec.fabric.spine_port_bandwidth;
  fabric.hop_latency = spec.fabric.hop_latency;
  fabric.ecmp = spec.fabric.ecmp;
  fabric.custom = std::move(custom);
  spec.fabric = std::move(fabric);
  return spec;
}

}  // namespace isthmus::tests
