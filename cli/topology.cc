#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file_io.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/internal/json_text.h"
#include "cli/output.h"
#include "scenarios/scenario.h"
#include "topology/cluster.h"
#include "topology/describe.h"
#include "topology/graph.h"
#include "topology/ibnetdiscover.h"
#include "topology/picture.h"

namespace isthmus::cli {
namespace {

nlohmann::ordered_json RouteJson(const topology::Cluster& cluster, base::Rank from, base::Rank to) {
  const topology::Route route = cluster.RouteBetween(cluster.DeviceOf(from), cluster.DeviceOf(to));
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (const topology::Link& link : route.links) {
    links.push_back({{"kind", topology::NameOf(link.kind)},
                     {"from", topology::LabelOf(cluster, link.from)},
                     {"to", topology::LabelOf(cluster, link.to)},
                     {"bandwidth_Bps", link.bandwidth.value()},
                     {"latency_s", link.latency.value()}});
  }
  nlohmann::ordered_json json{
      {"from", from.value()}, {"to", to.value()}, {"kind", topology::NameOf(route.Kind())}};
  json["bandwidth_Bps"] =
      route.Bandwidth() ? nlohmann::ordered_json(route.Bandwidth()->value()) : nullptr;
  json["latency_s"] = route.Latency().value();
  json["links"] = links;
  return json;
}

nlohmann::ordered_json ClusterJson(const topology::Cluster& cluster) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const topology::NodeGroup& group : cluster.spec().node_groups) {
    groups.push_back({{"name", group.name},
                      {"nodes", group.num_nodes},
                      {"gpus_per_node", group.gpus_per_node},
                      {"nodes_per_nvlink_domain", group.nodes_per_nvlink_domain},
                      {"gpu", group.gpu}});
  }
  return {{"name", cluster.spec().name},
          {"num_gpus", cluster.num_gpus()},
          {"num_nodes", cluster.num_nodes()},
          {"num_leaf_groups", cluster.num_leaf_groups()},
          {"num_nvlink_domains", cluster.num_nvlink_domains()},
          {"num_pods", cluster.num_pods()},
          {"num_devices", cluster.num_devices()},
          {"num_links", cluster.num_links()},
          {"bisection_Bps", cluster.spec().fabric.custom
                                ? nlohmann::ordered_json(nullptr)
                                : nlohmann::ordered_json(topology::Bisection(cluster).value())},
          {"node_groups", groups}};
}

void WriteFiles(const TopologyOptions& options, const topology::Cluster& cluster) {
  std::vector<std::string> outputs;
  for (const std::string& file : {options.export_to, options.picture}) {
    if (!file.empty()) outputs.push_back(file);
  }
  if (options.output.file) outputs.push_back(*options.output.file);
  std::vector<std::string> inputs{options.cluster};
  if (!options.fabric.empty()) inputs.push_back(options.fabric);
  CheckFiles(inputs, outputs);
  if (!options.export_to.empty()) {
    base::WriteFile(options.export_to, scenarios::WriteCluster(cluster.spec()));
  }
  if (!options.picture.empty()) base::WriteFile(options.picture, topology::DrawCluster(cluster));
}

std::string AnswerOf(const TopologyOptions& options, const topology::Cluster& cluster) {
  if (options.dot) return topology::ClusterGraph(cluster).Dot();
  const bool json = options.output.json;
  if (!options.from) {
    return json ? internal::JsonText(ClusterJson(cluster)) : topology::DescribeCluster(cluster);
  }
  const base::Rank from{*options.from};
  const base::Rank to{*options.to};
  return json ? internal::JsonText(RouteJson(cluster, from, to))
              : topology::DescribeRoute(cluster, from, to);
}

// What a discovered fabric was made into, for who has to trust it.
void TellFabric(const topology::DiscoveredFabric& found, const std::string& file) {
  std::string told = fmt::format(
      "{}: node 0 is {}, node {} is {}; NIC 0 is {}, NIC {} is {}; {}\n", file, found.hosts.front(),
      found.hosts.size() - 1, found.hosts.back(), found.nics.front(), found.nics.size() - 1,
      found.nics.back(),
      base::Counted(static_cast<std::int64_t>(found.fabric.switches.size()), "switch", "switches"));
  for (const topology::LinkFault& lost : found.lost_nics) {
    told += fmt::format("{}: host {} lacks {}: a dead link\n", file,
                        found.hosts[static_cast<std::size_t>(lost.node.value())],
                        found.nics[static_cast<std::size_t>(lost.index)]);
  }
  for (const std::string& adapter : found.left_out) {
    told += fmt::format("{}: left out: {}\n", file, adapter);
  }
  Tell(told);
}

topology::ClusterSpec SpecOf(const TopologyOptions& options) {
  if (options.fabric.empty()) return scenarios::LoadCluster(options.cluster, options.nodes);
  if (options.nodes) {
    throw base::Error("topology: --fabric says how many nodes there are; leave --nodes out");
  }
  const topology::DiscoveredFabric found =
      topology::ReadIbnetdiscover(base::ReadFile(options.fabric), options.fabric, options.nics);
  TellFabric(found, options.fabric);
  return topology::WithFabric(scenarios::LoadCluster(options.cluster, {}), found, options.fabric);
}

}  // namespace

int Topology(const TopologyOptions& options) {
  if (options.from.has_value() != options.to.has_value()) {
    throw base::Error("topology: --from and --to belong together; give both ranks of the transfer");
  }
  const topology::Cluster cluster(SpecOf(options));
  const std::string answer = AnswerOf(options, cluster);
  WriteFiles(options, cluster);
  Write(options.output, answer);
  return 0;
}

}  // namespace isthmus::cli
