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
#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "topology/cluster.h"
#include "topology/describe.h"
#include "topology/internal/numbering.h"

namespace isthmus::topology {

using internal::LeadsUp;

namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Device, Link>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

bool IsSwitchOfFabric(const Device& device) { return device.kind >= DeviceKind::kLeaf; }

// Which devices hand on what is not for them, on the way between two ends.
struct MayForward {
  const Device& source;
  const Device& target;

  bool operator()(const Device& device) const {
    if (device.id == source.id) return true;
    if (device.kind == DeviceKind::kHost) return false;
    return device.kind != DeviceKind::kGpu || device.domain == source.domain ||
           device.domain == target.domain;
  }
};

// What comes from the fabric goes to a GPU: neither the NIC nor the PCIe switch sends it back.
bool TellsDirections(const Device& device) {
  return device.kind == DeviceKind::kPcieSwitch || device.kind == DeviceKind::kNic ||
         IsSwitchOfFabric(device);
}

// A graph for searching, in which what has turned down stays down: device v is the vertex 2v for
// data on its way up and, of those that tell directions, 2v + 1 for data on its way down. All of
// these but NICs turn what goes up.
using Weighted =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                          boost::property<boost::edge_weight_t, std::int64_t>>;

Weighted UpAndDown(const Graph& graph, const MayForward& may_forward) {
  Weighted lifted(2 * boost::num_vertices(graph));
  const auto [first_vertex, last_vertex] = boost::vertices(graph);
  for (auto vertex = first_vertex; vertex != last_vertex; ++vertex) {
    const Device& device = graph[*vertex];
    if (!TellsDirections(device) || device.kind == DeviceKind::kNic) continue;
    boost::add_edge(2 * *vertex, 2 * *vertex + 1, 0, lifted);
  }
  const auto [first, last] = boost::edges(graph);
  for (auto edge = first; edge != last; ++edge) {
    const Vertex from = boost::source(*edge, graph);
    const Vertex to = boost::target(*edge, graph);
    if (!may_forward(graph[from])) continue;
    const std::size_t down = LeadsUp(graph[*edge].id) ? 0 : 1;
    boost::add_edge(2 * from + (TellsDirections(graph[from]) ? down : 0),
                    2 * to + (TellsDirections(graph[to]) ? down : 0), RoutingCost(graph[*edge]),
                    lifted);
  }
  return lifted;
}

// The predecessor of each vertex on the path of least cost; its own if it can't be reached.
std::vector<Vertex> Search(const Weighted& lifted, Vertex source) {
  std::vector<Vertex> previous(boost::num_vertices(lifted));
  const auto index = boost::get(boost::vertex_index, lifted);
  boost::dijkstra_shortest_paths(
      lifted, source,
      boost::predecessor_map(boost::make_iterator_property_map(previous.begin(), index)));
  return previous;
}

}  // namespace

struct ClusterGraph::Parts {
  const Cluster* cluster = nullptr;
  Graph graph;
  std::map<base::DeviceId, Vertex> vertices;
  std::vector<Link> dead;
};

ClusterGraph::ClusterGraph(ClusterGraph&& other) noexcept = default;
ClusterGraph::~ClusterGraph() = default;

ClusterGraph::ClusterGraph(const Cluster& cluster, std::span<const base::DeviceId> devices) {
  auto parts = std::make_unique<Parts>();
  parts->cluster = &cluster;
  for (const base::DeviceId id : devices) {
    parts->vertices.emplace(id, boost::add_vertex(cluster.DeviceAt(id), parts->graph));
  }
  for (const base::DeviceId id : devices) {
    for (const base::LinkId link_id : cluster.LinksFrom(id)) {
      const Link link = cluster.LinkAt(link_id);
      const auto to = parts->vertices.find(link.to);
      if (to == parts->vertices.end()) continue;
      if (link.is_dead()) {
        parts->dead.push_back(link);
        continue;
      }
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

// What can be reached from the GPU without entering another NVLink domain. Switches of the fabric
// are reached from below and not left again.
void AddSurroundings(const Cluster& cluster, base::DeviceId gpu, std::set<base::DeviceId>& found) {
  const int domain = cluster.NvlinkDomainOf(gpu);
  std::vector<base::DeviceId> todo = {gpu};
  while (!todo.empty()) {
    const base::DeviceId id = todo.back();
    todo.pop_back();
    if (!found.insert(id).second) continue;
    const Device device = cluster.DeviceAt(id);
    if (device.kind == DeviceKind::kSwitch) continue;  // all of them are added by the caller
    const bool is_of_fabric = IsSwitchOfFabric(device);
    for (const base::LinkId link_id : cluster.LinksFrom(id)) {
      const Link link = cluster.LinkAt(link_id);
      const Device next = cluster.DeviceAt(link.to);
      const bool is_elsewhere = next.kind == DeviceKind::kGpu && next.domain != domain;
      if (!is_elsewhere && (!is_of_fabric || LeadsUp(link.id))) todo.push_back(next.id);
    }
  }
}

}  // namespace

ClusterGraph::ClusterGraph(const Cluster& cluster) : ClusterGraph(cluster, AllDevices(cluster)) {}

ClusterGraph ClusterGraph::OfDomainsOf(const Cluster& cluster, base::DeviceId a, base::DeviceId b) {
  std::set<base::DeviceId> devices;
  AddSurroundings(cluster, a, devices);
  AddSurroundings(cluster, b, devices);
  for (int number = 0; number < cluster.CountOf(DeviceKind::kSwitch); ++number) {
    devices.insert(cluster.DeviceNumbered(DeviceKind::kSwitch, number));
  }
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
  const Vertex source = 2 * parts_->vertices.at(from);
  const Vertex target = 2 * parts_->vertices.at(to);
  const Weighted lifted =
      UpAndDown(graph, {.source = graph[source / 2], .target = graph[target / 2]});
  const std::vector<Vertex> previous = Search(lifted, source);

  Route route{.from = from, .to = to, .links = {}};
  for (Vertex vertex = target; vertex != source; vertex = previous[vertex]) {
    if (previous[vertex] == vertex) return std::nullopt;
    const Vertex before = previous[vertex] / 2;
    if (before == vertex / 2) continue;  // the turn inside a switch
    route.links.push_back(graph[boost::edge(before, vertex / 2, graph).first]);
  }
  std::reverse(route.links.begin(), route.links.end());
  return route;
}

std::vector<Link> ClusterGraph::DeadLinksBetween(base::DeviceId from, base::DeviceId to) const {
  const Graph& graph = parts_->graph;
  const Vertex source = 2 * parts_->vertices.at(from);
  const Device& target = graph[parts_->vertices.at(to)];
  const std::vector<Vertex> previous =
      Search(UpAndDown(graph, {.source = graph[source / 2], .target = target}), source);
  const auto is_reached = [&](base::DeviceId id) {
    const Vertex up = 2 * parts_->vertices.at(id);
    return up == source || previous[up] != up || previous[up + 1] != up + 1;
  };
  std::vector<Link> around;
  for (const Link& link : parts_->dead) {
    if (is_reached(link.from) && !is_reached(link.to)) around.push_back(link);
  }
  std::ranges::sort(around, {}, &Link::id);
  return around;
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

namespace {

// As text between quotes: names of switches may hold anything.
std::string EscapedDot(const std::string& label) {
  std::string escaped;
  for (const char character : label) {
    if (character == '"' || character == '\\') escaped += '\\';
    escaped += character;
  }
  return escaped;
}

}  // namespace

std::string ClusterGraph::Dot() const {
  const Graph& graph = parts_->graph;
  std::string text = "graph cluster {\n";
  for (const auto& [id, vertex] : parts_->vertices) {
    text += fmt::format("  d{} [label=\"{}\"];\n", id.value(),
                        EscapedDot(LabelOf(*parts_->cluster, id)));
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
