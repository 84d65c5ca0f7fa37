#include "topology/graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "topology/cluster.h"

namespace isthmus::topology {
namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Device, Link>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;
using Edge = boost::graph_traits<Graph>::edge_descriptor;

// Which devices hand on what is not for them, on the way between two ends.
struct MayForward {
  const Graph* graph = nullptr;
  Vertex source = 0;
  std::optional<base::NodeId> from_node;
  std::optional<base::NodeId> to_node;

  bool operator()(const Edge& edge) const {
    const Vertex vertex = boost::source(edge, *graph);
    if (vertex == source) return true;
    const Device& device = (*graph)[vertex];
    if (device.kind == DeviceKind::kHost) return false;
    return device.kind != DeviceKind::kGpu || device.node == from_node || device.node == to_node;
  }
};

}  // namespace

struct ClusterGraph::Parts {
  Graph graph;
  std::map<base::DeviceId, Vertex> vertices;
};

ClusterGraph::ClusterGraph(ClusterGraph&& other) noexcept = default;
ClusterGraph::~ClusterGraph() = default;

ClusterGraph::ClusterGraph(const Cluster& cluster, std::span<const base::DeviceId> devices) {
  auto parts = std::make_unique<Parts>();
  for (const base::DeviceId id : devices) {
    parts->vertices.emplace(id, boost::add_vertex(cluster.DeviceAt(id), parts->graph));
  }
  for (const base::DeviceId id : devices) {
    for (const base::LinkId link_id : cluster.LinksFrom(id)) {
      const Link link = cluster.LinkAt(link_id);
      const auto to = parts->vertices.find(link.to);
      if (to == parts->vertices.end() || link.is_dead()) continue;
      boost::add_edge(parts->vertices.at(id), to->second, link, parts->graph);
    }
  }
  parts_ = std::move(parts);
}

namespace {

std::vector<base::DeviceId> AllDevices(const Cluster& cluster) {
  std::vector<base::DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(cluster.num_devices()));
  for (base::DeviceId id{0}; id.value() < cluster.num_devices(); ++id) devices.push_back(id);
  return devices;
}

// What can be reached from the GPU without entering another node.
void AddSurroundings(const Cluster& cluster, base::DeviceId gpu, std::set<base::DeviceId>& found) {
  const base::NodeId node = cluster.NodeOf(gpu);
  std::vector<base::DeviceId> todo = {gpu};
  std::set<base::DeviceId> visited = {gpu};
  while (!todo.empty()) {
    const base::DeviceId id = todo.back();
    todo.pop_back();
    found.insert(id);
    if (!cluster.DeviceAt(id).node) continue;  // a leaf; its spine is added by the caller
    for (const base::LinkId link : cluster.LinksFrom(id)) {
      const Device next = cluster.DeviceAt(cluster.LinkAt(link).to);
      if ((!next.node || next.node == node) && visited.insert(next.id).second) {
        todo.push_back(next.id);
      }
    }
  }
}

}  // namespace

ClusterGraph::ClusterGraph(const Cluster& cluster) : ClusterGraph(cluster, AllDevices(cluster)) {}

ClusterGraph ClusterGraph::OfNodesOf(const Cluster& cluster, base::DeviceId a, base::DeviceId b) {
  std::set<base::DeviceId> devices;
  AddSurroundings(cluster, a, devices);
  AddSurroundings(cluster, b, devices);
  const base::DeviceId last{cluster.num_devices() - 1};
  if (cluster.DeviceAt(last).kind == DeviceKind::kSpine) devices.insert(last);
  return ClusterGraph(cluster, std::vector(devices.begin(), devices.end()));
}

int ClusterGraph::num_devices() const {
  return static_cast<int>(boost::num_vertices(parts_->graph));
}

int ClusterGraph::num_live_links() const {
  return static_cast<int>(boost::num_edges(parts_->graph));
}

std::optional<Route> ClusterGraph::Shortest(base::DeviceId from, base::DeviceId to) const {
  const Graph& graph = parts_->graph;
  const Vertex source = parts_->vertices.at(from);
  const Vertex target = parts_->vertices.at(to);
  const MayForward may_forward{.graph = &graph,
                               .source = source,
                               .from_node = graph[source].node,
                               .to_node = graph[target].node};
  const boost::filtered_graph<Graph, MayForward> usable(graph, may_forward);
  const auto cost = boost::make_function_property_map<Edge, std::int64_t>(
      [&graph](const Edge& edge) { return RoutingCost(graph[edge]); });
  std::vector<Vertex> previous(boost::num_vertices(graph));
  const auto index = boost::get(boost::vertex_index, graph);
  boost::dijkstra_shortest_paths(usable, source,
                                 boost::weight_map(cost).predecessor_map(
                                     boost::make_iterator_property_map(previous.begin(), index)));

  Route route{.from = from, .to = to, .links = {}};
  for (Vertex vertex = target; vertex != source; vertex = previous[vertex]) {
    if (previous[vertex] == vertex) return std::nullopt;
    route.links.push_back(graph[boost::edge(previous[vertex], vertex, graph).first]);
  }
  std::reverse(route.links.begin(), route.links.end());
  return route;
}

std::vector<std::vector<base::DeviceId>> ClusterGraph::GpuIslands() const {
  // Both directions of a cable live or die together, so reaching is mutual.
  boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> cables(
      boost::num_vertices(parts_->graph));
  const auto [first, last] = boost::edges(parts_->graph);
  for (auto edge = first; edge != last; ++edge) {
    const Vertex from = boost::source(*edge, parts_->graph);
    const Vertex to = boost::target(*edge, parts_->graph);
    const bool is_to_host = parts_->graph[from].kind == DeviceKind::kHost ||
                            parts_->graph[to].kind == DeviceKind::kHost;
    if (from < to && !is_to_host) boost::add_edge(from, to, cables);
  }
  std::vector<std::size_t> component(boost::num_vertices(cables));
  boost::connected_components(cables, component.data());
  std::map<std::size_t, std::vector<base::DeviceId>> members;
  for (const auto& [id, vertex] : parts_->vertices) {
    if (parts_->graph[vertex].kind == DeviceKind::kGpu) members[component[vertex]].push_back(id);
  }
  std::vector<std::vector<base::DeviceId>> islands;
  islands.reserve(members.size());
  for (auto& [number, gpus] : members) islands.push_back(std::move(gpus));
  std::sort(islands.begin(), islands.end(), [](const auto& a, const auto& b) {
    return std::pair(b.size(), a.front()) < std::pair(a.size(), b.front());
  });
  return islands;
}

std::string ClusterGraph::Dot() const {
  const Graph& graph = parts_->graph;
  std::string text = "graph cluster {\n";
  for (const auto& [id, vertex] : parts_->vertices) {
    text += fmt::format("  d{} [label=\"{}\"];\n", id.value(), LabelOf(graph[vertex]));
  }
  std::map<base::LinkId, Link> links;
  const auto [first, last] = boost::edges(graph);
  for (auto edge = first; edge != last; ++edge) links.emplace(graph[*edge].id, graph[*edge]);
  for (const auto& [id, link] : links) {
    if (id.value() % 2 != 0) continue;  // the way back of the same cable
    text += fmt::format("  d{} -- d{} [label=\"{} {}\"];\n", link.from.value(), link.to.value(),
                        NameOf(link.kind), base::FormatRate(link.bandwidth));
  }
  return text + "}\n";
}

}  // namespace isthmus::topology
