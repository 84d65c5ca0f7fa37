#include "sim/network/traffic_map.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"

namespace isthmus::sim {

using plan::CollectiveKind;

/// The nodes (NVLink domains) that a group is on, in the order of its ranks, and what it has there.
struct TrafficMap::Placed {
  struct Node {
    std::vector<base::DeviceId> gpus;
    std::vector<base::DeviceId> doors;  // the first GPU of each NIC that the group uses
  };
  std::vector<Node> nodes;
  int num_ranks = 0;
  int num_nics = 0;  // used in a node, least over nodes
};

TrafficMap::Placed TrafficMap::Place(const std::vector<base::DeviceId>& gpus) const {
  Placed placed{.num_ranks = static_cast<int>(gpus.size())};
  std::map<int, std::size_t> index_of_node;
  for (const base::DeviceId gpu : gpus) {
    const auto [at, is_new] =
        index_of_node.try_emplace(cluster_.NvlinkDomainOf(gpu), placed.nodes.size());
    if (is_new) placed.nodes.emplace_back();
    placed.nodes[at->second].gpus.push_back(gpu);
  }
  for (Placed::Node& node : placed.nodes) {
    std::set<std::optional<base::DeviceId>> nics;
    for (const base::DeviceId gpu : node.gpus)
      if (nics.insert(cluster_.NicOf(gpu)).second) node.doors.push_back(gpu);
    const int num_doors = static_cast<int>(node.doors.size());
    placed.num_nics = placed.num_nics == 0 ? num_doors : std::min(placed.num_nics, num_doors);
  }
  return placed;
}

namespace {

/// Two devices as a key.
std::uint64_t Pair(base::DeviceId from, base::DeviceId to) {
  return static_cast<std::uint64_t>(from.index()) << 32U | static_cast<std::uint64_t>(to.index());
}

}  // namespace

std::uint32_t TrafficMap::PathOver(std::span<const topology::Link> links) {
  TrafficPath& path = traffic_.paths.emplace_back();
  path.links.reserve(links.size());
  path.bytes_per_second = links.front().bandwidth.value();
  for (const topology::Link& link : links) {
    std::uint32_t& number = number_of_link_[link.id.index()];
    if (number == plan::kNone32) {
      number = static_cast<std::uint32_t>(traffic_.links.size());
      traffic_.links.push_back({.link = link});
    }
    path.links.push_back(number);
    path.bytes_per_second = std::min(path.bytes_per_second, link.bandwidth.value());
  }
  return static_cast<std::uint32_t>(traffic_.paths.size() - 1);
}

std::uint32_t TrafficMap::PathBetween(base::DeviceId from, base::DeviceId to) {
  const auto [at, is_new] = path_between_.try_emplace(Pair(from, to), 0U);
  if (is_new) at->second = PathOver(cluster_.RouteBetween(from, to).links);
  return at->second;
}

std::uint32_t TrafficMap::AddShape(Shape shape) {
  // Most shapes are one flow: nothing to add up.
  std::map<std::uint32_t, double> load;  // by link
  for (TrafficPart& part : shape.parts) {
    const TrafficPath& path = traffic_.paths[part.path];
    part.seconds_per_byte = part.share / path.bytes_per_second;
    shape.seconds_per_byte = std::max(shape.seconds_per_byte, part.seconds_per_byte);
    if (shape.parts.size() == 1) break;
    for (const std::uint32_t link : path.links) load[link] += part.share;
  }
  for (const auto& [number, share] : load) {
    const topology::Link& link = traffic_.links[number].link;
    if (link.kind >= topology::LinkKind::kUplink) continue;
    shape.seconds_per_byte = std::max(shape.seconds_per_byte, share / link.bandwidth.value());
  }
  traffic_.shapes.push_back(std::move(shape));
  return static_cast<std::uint32_t>(traffic_.shapes.size() - 1);
}

void TrafficMap::AddEdge(Shape& shape, base::DeviceId from, base::DeviceId to, double share) {
  if (from == to || share <= 0) return;
  shape.parts.push_back({.path = PathBetween(from, to), .share = share});
}

std::uint32_t TrafficMap::Message(base::DeviceId from, base::DeviceId to) {
  const auto [at, is_new] = messages_.try_emplace(Pair(from, to), 0U);
  if (!is_new) return at->second;
  Shape shape;
  AddEdge(shape, from, to, 1);
  return at->second = AddShape(std::move(shape));
}

std::uint32_t TrafficMap::Copy(base::DeviceId gpu, plan::CopyDirection direction) {
  const base::DeviceId host = cluster_.HostOf(gpu);
  const bool to_host = direction == plan::CopyDirection::kToHost;
  const auto [at, is_new] = messages_.try_emplace(to_host ? Pair(gpu, host) : Pair(host, gpu), 0U);
  if (!is_new) return at->second;
  const topology::Route route = to_host ? cluster_.RouteToHost(gpu) : cluster_.RouteFromHost(gpu);
  Shape shape;
  shape.parts.push_back({.path = PathOver(route.links), .share = 1});
  return at->second = AddShape(std::move(shape));
}

std::uint32_t TrafficMap::Collective(CollectiveKind kind, const std::vector<base::DeviceId>& gpus) {
  const auto [at, is_new] = collectives_.try_emplace({kind, gpus}, 0U);
  if (!is_new) return at->second;
  Shape shape;
  const Placed placed = Place(gpus);
  if (kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kAllToAllV) {
    AddVolumes(shape, placed);
  } else {
    AddRings(shape, kind, placed);
  }
  return at->second = AddShape(std::move(shape));
}

namespace {

/// Bytes per byte of the collective's size on an edge between nodes, over one of q NICs.
double ShareAcross(CollectiveKind kind, double n, double nodes, double q) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (nodes - 1) / (nodes * q);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return (n - 1) / (n * q);
    case CollectiveKind::kRingExchange:
      return 1;
    default:
      return 1 / q;  // broadcast, reduce: all of it, once, down the chain
  }
}

/// The same on an edge between two GPUs of a node in which the group has p ranks.
double ShareInside(CollectiveKind kind, double n, double p, bool is_one_node) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      // Summed by the switches where that is less (p > 2).
      return std::min((p + 1) / p, 2 * (p - 1) / p);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      // Each of the rings leaves the node at another GPU, so p - 1 of p edges are inside.
      return is_one_node ? (n - 1) / n : (n - 1) / n * (p - 1) / p;
    default:
      return 1;
  }
}

bool IsChain(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}

}  // namespace

void TrafficMap::AddRings(Shape& shape, CollectiveKind kind, const Placed& placed) {
  const double n = placed.num_ranks;
  const std::size_t num_nodes = placed.nodes.size();
  for (const Placed::Node& node : placed.nodes) {
    const std::size_t p = node.gpus.size();
    if (p == 1) continue;
    const double share = ShareInside(kind, n, static_cast<double>(p), num_nodes == 1);
    for (std::size_t at = 0; at + (IsChain(kind) ? 1 : 0) < p; ++at)
      AddEdge(shape, node.gpus[at], node.gpus[(at + 1) % p], share);
  }
  if (num_nodes == 1) return;
  // A ring exchange crosses nodes on one edge of its ring.
  const int q = kind == CollectiveKind::kRingExchange ? 1 : placed.num_nics;
  const double share = ShareAcross(kind, n, static_cast<double>(num_nodes), q);
  for (std::size_t at = 0; at + (IsChain(kind) ? 1 : 0) < num_nodes; ++at) {
    const Placed::Node& from = placed.nodes[at];
    const Placed::Node& to = placed.nodes[(at + 1) % num_nodes];
    for (std::size_t nic = 0; nic < static_cast<std::size_t>(q); ++nic)
      AddEdge(shape, from.doors[nic], to.doors[nic], share);
  }
}

// The GPU at the same place in another one's node, whether or not it is of the group: what a rank
// sends leaves by its own NIC, on its own rail.
base::DeviceId TrafficMap::CounterpartOf(base::DeviceId gpu, base::DeviceId other) const {
  const int place =
      std::min(cluster_.LocalIndexOf(gpu), cluster_.NodeGroupOf(other).gpus_per_node - 1);
  return base::DeviceId(other.value() - cluster_.LocalIndexOf(other) + place);
}

void TrafficMap::AddVolumes(Shape& shape, const Placed& placed) {
  const double n = placed.num_ranks;
  const auto add = [&](std::span<const topology::Link> links, double ranks) {
    if (ranks > 0) shape.parts.push_back({.path = PathOver(links), .share = ranks / n});
  };
  // A route's way up to its highest switch, and from there down.
  const auto halves = [this](const topology::Route& route) {
    std::size_t top = 0;
    topology::DeviceKind highest = topology::DeviceKind::kGpu;
    for (std::size_t at = 0; at < route.links.size(); ++at) {
      const topology::DeviceKind kind = cluster_.DeviceAt(route.links[at].to).kind;
      if (at > 0 && kind <= highest) continue;
      highest = kind;
      top = at;
    }
    const std::span<const topology::Link> all(route.links);
    return std::pair(all.first(top + 1), all.subspan(top + 1));
  };
  for (std::size_t at = 0; at < placed.nodes.size(); ++at) {
    const Placed::Node& node = placed.nodes[at];
    const double p = static_cast<double>(node.gpus.size());
    for (std::size_t member = 0; member < node.gpus.size(); ++member) {
      const base::DeviceId gpu = node.gpus[member];
      if (p > 1) {
        const base::DeviceId neighbour = node.gpus[(member + 1) % node.gpus.size()];
        const topology::Route out = cluster_.RouteBetween(gpu, neighbour);
        const topology::Route in = cluster_.RouteBetween(neighbour, gpu);
        add(halves(out).first, p - 1);
        add(halves(in).second, p - 1);
      }
      // Ranks on other nodes, by what kind of route leads there; one of each stands for all.
      std::map<topology::PathKind, std::pair<base::DeviceId, double>> others;
      for (std::size_t step = 1; step < placed.nodes.size(); ++step) {
        const Placed::Node& other = placed.nodes[(at + step) % placed.nodes.size()];
        const base::DeviceId far = CounterpartOf(gpu, other.gpus.front());
        const auto kind = cluster_.RouteBetween(gpu, far).Kind();
        const auto [known, is_new] = others.try_emplace(kind, far, 0.0);
        known->second.second += static_cast<double>(other.gpus.size());
      }
      for (const auto& [kind, far] : others) {
        const topology::Route out = cluster_.RouteBetween(gpu, far.first);
        const topology::Route in = cluster_.RouteBetween(far.first, gpu);
        add(halves(out).first, far.second);
        add(halves(in).second, far.second);
      }
    }
  }
}

namespace {

/// What lets traffic onto a link or takes it off: the slowest link on one side of it, by path.
struct Guards {
  std::vector<std::uint32_t> links;  // ascending and each once when all are there
  bool is_whole = true;              // every path has one

  void Add(const Traffic& traffic, std::span<const std::uint32_t> side) {
    if (side.empty()) {
      is_whole = false;
      return;
    }
    const std::uint32_t slowest =
        *std::min_element(side.begin(), side.end(), [&](std::uint32_t a, std::uint32_t b) {
          return traffic.links[a].link.bandwidth < traffic.links[b].link.bandwidth;
        });
    if (links.empty() || links.back() != slowest) links.push_back(slowest);
  }
  /// Whether no more comes through them than `bandwidth`, all being links that count.
  bool Hold(const Traffic& traffic, base::BytesPerSecond bandwidth) const {
    double sum = 0;
    for (const std::uint32_t guard : links) {
      if (!traffic.links[guard].may_be_short) return false;
      sum += traffic.links[guard].link.bandwidth.value();
    }
    return is_whole && sum <= bandwidth.value();
  }
};

}  // namespace

Traffic TrafficMap::Settled() && {
  const std::size_t num_links = traffic_.links.size();
  std::vector<std::array<Guards, 2>> guards(num_links);  // before and behind
  for (const TrafficPath& path : traffic_.paths) {
    const std::span<const std::uint32_t> all(path.links);
    for (std::size_t at = 0; at < all.size(); ++at) {
      guards[all[at]][0].Add(traffic_, all.first(at));
      guards[all[at]][1].Add(traffic_, all.subspan(at + 1));
    }
  }
  for (std::array<Guards, 2>& sides : guards) {
    for (Guards& side : sides) {
      std::sort(side.links.begin(), side.links.end());
      side.links.erase(std::unique(side.links.begin(), side.links.end()), side.links.end());
    }
  }
  std::vector<bool> is_guard(num_links, false);
  for (std::uint32_t link = 0; link < num_links; ++link) {
    TrafficLink& here = traffic_.links[link];
    for (const Guards& side : guards[link]) {
      if (is_guard[link] || !side.Hold(traffic_, here.link.bandwidth)) continue;
      here.may_be_short = false;
      for (const std::uint32_t guard : side.links) is_guard[guard] = true;
      break;
    }
  }
  for (TrafficPath& path : traffic_.paths) {
    for (const std::uint32_t link : path.links)
      if (traffic_.links[link].may_be_short) path.contended.push_back(link);
  }
  return std::move(traffic_);
}

}  // namespace isthmus::sim
