#include "cli/internal/topology_json.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

#include "topology/describe.h"
#include "topology/graph.h"
#include "topology/oversubscription.h"

namespace isthmus::cli::internal {
namespace {

using Json = nlohmann::ordered_json;

Json GroupsJson(const topology::ClusterSpec& spec) {
  Json groups = Json::array();
  for (const topology::NodeGroup& group : spec.node_groups) {
    groups.push_back({{"name", group.name},
                      {"nodes", group.num_nodes},
                      {"gpus_per_node", group.gpus_per_node},
                      {"nodes_per_nvlink_domain", group.nodes_per_nvlink_domain},
                      {"gpu", group.gpu},
                      {"nics_per_node", group.nics_per_node},
                      {"nvlink_bandwidth_Bps", group.nvlink_bandwidth.value.value()},
                      {"nvlink_latency_s", group.nvlink_latency.value.value()},
                      {"pcie_bandwidth_Bps", group.pcie_bandwidth.value.value()},
                      {"pcie_latency_s", group.pcie_latency.value.value()},
                      {"nic_bandwidth_Bps", group.nic_bandwidth.value.value()},
                      {"nic_latency_s", group.nic_latency.value.value()}});
  }
  return groups;
}

Json LayerJson(const std::vector<topology::SwitchBandwidth>& layer) {
  Json switches = Json::array();
  for (const topology::SwitchBandwidth& of_switch : layer) {
    switches.push_back({{"where", of_switch.where},
                        {"down_Bps", of_switch.down.value()},
                        {"up_Bps", of_switch.up.value()},
                        {"oversubscription_asked", of_switch.asked},
                        {"oversubscription", of_switch.built()}});
  }
  return switches;
}

// null without a network.
Json FabricJson(const topology::Cluster& cluster) {
  const topology::FabricSpec& fabric = cluster.spec().fabric;
  if (fabric.custom) {
    return {{"kind", "custom"},
            {"switches", fabric.custom->switches.size()},
            {"cables", fabric.custom->cables.size()}};
  }
  if (cluster.CountOf(topology::DeviceKind::kLeaf) == 0) return nullptr;
  const bool is_rail_optimised = fabric.wiring == topology::LeafWiring::kRailOptimised;
  Json json{{"kind", fabric.core ? "leaf_spine_core" : "leaf_spine"},
            {"wiring", is_rail_optimised ? "rail_optimised" : "shared"},
            {"nodes_per_leaf_group", fabric.nodes_per_leaf_group.value},
            {"leaf_switches", cluster.CountOf(topology::DeviceKind::kLeaf)},
            {"num_spines", fabric.num_spines.value},
            {"spine_port_bandwidth_Bps", fabric.spine_port_bandwidth.value.value()},
            {"hop_latency_s", fabric.hop_latency.value.value()},
            {"leaf", LayerJson(topology::LeafBandwidths(cluster))}};
  if (fabric.core) {
    json["leaf_groups_per_pod"] = fabric.core->leaf_groups_per_pod.value;
    json["num_cores"] = fabric.core->num_cores.value;
    json["core_port_bandwidth_Bps"] = fabric.core->port_bandwidth.value.value();
    json["core_hop_latency_s"] = fabric.core->hop_latency.value.value();
    json["spine"] = LayerJson(topology::SpineBandwidths(cluster));
  }
  json["ecmp_seed"] = fabric.ecmp ? Json(fabric.ecmp->seed) : Json(nullptr);
  return json;
}

Json FaultsJson(const topology::ClusterSpec& spec) {
  Json faults = Json::array();
  for (const topology::LinkFault& fault : spec.link_faults) {
    const auto* const part = std::ranges::find(topology::kFaultyParts, fault.part,
                                               [](const auto& named) { return named.second; });
    faults.push_back({{"part", part->first},
                      {"node", fault.node.value()},
                      {"index", fault.index},
                      {"bandwidth_factor", fault.bandwidth_factor}});
    if (fault.to) faults.back()["to"] = *fault.to;
  }
  return faults;
}

}  // namespace

nlohmann::ordered_json ClusterJson(const topology::Cluster& cluster) {
  const topology::ClusterSpec& spec = cluster.spec();
  const topology::ClusterGraph graph(cluster);
  Json cut_off = Json::array();
  const auto islands = graph.GpuIslands();
  for (std::size_t index = 1; index < islands.size(); ++index) {
    for (const base::DeviceId gpu : islands[index]) cut_off.push_back(gpu.value());
  }
  Json slow_gpus = Json::array();
  for (const topology::SlowGpu& slow : spec.slow_gpus) {
    slow_gpus.push_back({{"gpu", slow.device.value()}, {"speed_factor", slow.speed_factor}});
  }
  return {{"name", spec.name},
          {"num_gpus", cluster.num_gpus()},
          {"num_nodes", cluster.num_nodes()},
          {"num_leaf_groups", cluster.num_leaf_groups()},
          {"num_nvlink_domains", cluster.num_nvlink_domains()},
          {"num_pods", cluster.num_pods()},
          {"num_devices", cluster.num_devices()},
          {"num_links", cluster.num_links()},
          {"num_live_links", graph.num_live_links()},
          {"bisection_Bps",
           spec.fabric.custom ? Json(nullptr) : Json(topology::Bisection(cluster).value())},
          {"node_groups", GroupsJson(spec)},
          {"fabric", FabricJson(cluster)},
          {"link_faults", FaultsJson(spec)},
          {"slow_gpus", slow_gpus},
          {"cut_off_gpus", cut_off}};
}

nlohmann::ordered_json RouteJson(const topology::Cluster& cluster, base::Rank from, base::Rank to) {
  const topology::Route route = cluster.RouteBetween(cluster.DeviceOf(from), cluster.DeviceOf(to));
  Json links = Json::array();
  for (const topology::Link& link : route.links) {
    links.push_back({{"kind", topology::NameOf(link.kind)},
                     {"from", topology::LabelOf(cluster, link.from)},
                     {"to", topology::LabelOf(cluster, link.to)},
                     {"bandwidth_Bps", link.bandwidth.value()},
                     {"latency_s", link.latency.value()}});
  }
  Json json{{"from", from.value()}, {"to", to.value()}, {"kind", topology::NameOf(route.Kind())}};
  json["bandwidth_Bps"] = route.Bandwidth() ? Json(route.Bandwidth()->value()) : nullptr;
  json["latency_s"] = route.Latency().value();
  json["links"] = links;
  return json;
}

}  // namespace isthmus::cli::internal
