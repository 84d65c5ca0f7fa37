#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_io.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/internal/json_text.h"
#include "cli/internal/topology_json.h"
#include "cli/output.h"
#include "scenarios/scenario.h"
#include "topology/cluster.h"
#include "topology/describe.h"
#include "topology/graph.h"
#include "topology/ibnetdiscover.h"
#include "topology/picture.h"

namespace isthmus::cli {
namespace {

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
    return json ? internal::JsonText(internal::ClusterJson(cluster))
                : topology::DescribeCluster(cluster);
  }
  const base::Rank from{*options.from};
  const base::Rank to{*options.to};
  return json ? internal::JsonText(internal::RouteJson(cluster, from, to))
              : topology::DescribeRoute(cluster, from, to);
}

// "node 0 is gpu-0, node 3 is gpu-3".
std::string FirstAndLast(std::string_view what, const std::vector<std::string>& names) {
  std::string text = fmt::format("{} 0 is {}", what, names.front());
  if (names.size() > 1) text += fmt::format(", {} {} is {}", what, names.size() - 1, names.back());
  return text;
}

// What a discovered fabric was made into, for who has to trust it.
void TellFabric(const topology::DiscoveredFabric& found, const std::string& file) {
  std::string told = fmt::format(
      "{}: {}; {}; {}\n", file, FirstAndLast("node", found.hosts), FirstAndLast("NIC", found.nics),
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

void CheckOptions(const TopologyOptions& options) {
  if (options.from.has_value() != options.to.has_value()) {
    throw base::Error("topology: --from and --to belong together; give both ranks of the transfer");
  }
  if (options.dot && (options.output.json || options.from)) {
    throw base::Error(
        fmt::format("topology: --dot prints the whole graph, {} something else\n"
                    "  hint: ask for one at a time",
                    options.from ? "--from and --to" : "--json"));
  }
  if (!options.picture.empty() && !options.picture.ends_with(".svg")) {
    throw base::Error(
        fmt::format("topology: --picture {}: pictures are drawn as SVG only\n"
                    "  hint: give a name that ends in .svg; browsers show it, and "
                    "rsvg-convert or Inkscape make a PNG of it",
                    options.picture));
  }
}

}  // namespace

int Topology(const TopologyOptions& options) {
  CheckOptions(options);
  const topology::Cluster cluster(SpecOf(options));
  const std::string answer = AnswerOf(options, cluster);
  WriteFiles(options, cluster);
  Write(options.output, answer);
  return 0;
}

}  // namespace isthmus::cli
