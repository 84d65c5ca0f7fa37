// The flows of collectives: which edges their rings have, and how much each carries.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "sim/network/traffic_map.h"

namespace isthmus::sim {

using plan::CollectiveKind;

TrafficMap::Placed TrafficMap::Place(const std::vector<base::DeviceId>& gpus) const {
  Placed placed{.num_ranks = static_cast<int>(gpus.size())};
  std::map<int, std::size_t> index_of_node;
  for (const base::DeviceId gpu : gpus) {
    const auto [at, is_new] =
        index_of_node.try_emplace(cluster_.NvlinkDomainOf(gpu), placed.nodes.size());
    if (is_new) placed.nodes.emplace_back();
    placed.nodes[at->second].gpus.push_back(gpu);
  }
  if (placed.nodes.size() == 1) return placed;
  const auto [first, last] = std::minmax_element(gpus.begin(), gpus.end());
  const bool leaves_leaf_group =
      cluster_.DeviceAt(*first).leaf_group != cluster_.DeviceAt(*last).leaf_group;
  for (Placed::Node& node : placed.nodes) {
    AddDoors(node, leaves_leaf_group);
    const int num_doors = static_cast<int>(node.doors.size());
    placed.num_nics = placed.num_nics == 0 ? num_doors : std::min(placed.num_nics, num_doors);
  }
  return placed;
}

// The first GPU of each NIC that routes take, one whose own NIC it is if there is any.
void TrafficMap::AddDoors(Placed::Node& node, bool leaves_leaf_group) const {
  for (const base::DeviceId gpu : node.gpus) {
    const std::optional<base::DeviceId> nic = cluster_.UsedNicOf(gpu, leaves_leaf_group);
    ISTHMUS_CHECK(nic.has_value(), "GPU {} has no NIC", gpu.value());
    const auto known = std::ranges::find(node.doors, *nic, &Placed::Door::nic);
    if (known == node.doors.end()) {
      node.doors.push_back({gpu, *nic, cluster_.DeviceAt(*nic).index});
    } else if (cluster_.NicOf(gpu) == nic && cluster_.NicOf(known->gpu) != nic) {
      known->gpu = gpu;
    }
  }
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

/// Bytes per byte of the collective's size on an edge between nodes, over one of q NICs. Where the
/// ring goes through all n GPUs, (n - 1) / n of it cross each edge; WireBytes has (nodes - 1) /
/// nodes there, since it bounds algorithms that send a node no byte twice as well.
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
    for (const auto& [out, in] : PairsOfDoors(from, to, static_cast<std::size_t>(q)))
      AddEdge(shape, out, in, share);
  }
}

// q doors of either node, no door twice; those on one rail together as far as there are any.
std::vector<std::pair<base::DeviceId, base::DeviceId>> TrafficMap::PairsOfDoors(
    const Placed::Node& from, const Placed::Node& to, std::size_t q) {
  std::vector<std::pair<base::DeviceId, base::DeviceId>> pairs;
  std::vector<Placed::Door> outs = from.doors;
  std::vector<Placed::Door> ins = to.doors;
  for (const bool is_same_rail : {true, false}) {
    for (auto out = outs.begin(); out != outs.end() && pairs.size() < q;) {
      const auto in = std::ranges::find_if(
          ins, [&](const Placed::Door& door) { return !is_same_rail || door.rail == out->rail; });
      if (in == ins.end()) {
        ++out;
        continue;
      }
      pairs.emplace_back(out->gpu, in->gpu);
      ins.erase(in);
      out = outs.erase(out);
    }
  }
  return pairs;
}

// The GPU at the same place in another one's node, whether or not it is of the group: what a rank
// sends leaves by its own NIC, on its own rail.
base::DeviceId TrafficMap::CounterpartOf(base::DeviceId gpu, base::DeviceId other) const {
  const int place =
      std::min(cluster_.LocalIndexOf(gpu), cluster_.NodeGroupOf(other).gpus_per_node - 1);
  return base::DeviceId(other.value() - cluster_.LocalIndexOf(other) + place);
}

void TrafficMap::AddVolume(Shape& shape, base::DeviceId gpu, base::DeviceId far, double share) {
  // A route's way up to its highest switch, and from there down.
  const auto top = [this](const topology::Route& route) {
    std::size_t best = 0;
    topology::DeviceKind highest = topology::DeviceKind::kGpu;
    for (std::size_t at = 0; at < route.links.size(); ++at) {
      const topology::DeviceKind kind = cluster_.DeviceAt(route.links[at].to).kind;
      if (at > 0 && kind <= highest) continue;
      highest = kind;
      best = at;
    }
    return best + 1;
  };
  const topology::Route out = cluster_.RouteBetween(gpu, far);
  const topology::Route in = cluster_.RouteBetween(far, gpu);
  const std::span<const topology::Link> up(out.links);
  const std::span<const topology::Link> down(in.links);
  shape.parts.push_back({.path = PathOver(up.first(top(out))), .share = share});
  shape.parts.push_back({.path = PathOver(down.subspan(top(in))), .share = share});
}

void TrafficMap::AddVolumes(Shape& shape, const Placed& placed) {
  const double n = placed.num_ranks;
  for (const Placed::Node& node : placed.nodes) {
    const std::size_t p = node.gpus.size();
    for (std::size_t member = 0; member < p; ++member) {
      const base::DeviceId gpu = node.gpus[member];
      if (p > 1) AddVolume(shape, gpu, node.gpus[(member + 1) % p], static_cast<double>(p - 1) / n);
      // Ranks on other nodes, by what kind of route leads there; one of each stands for all.
      std::map<topology::PathKind, std::pair<base::DeviceId, double>> others;
      for (const Placed::Node& other : placed.nodes) {
        if (&other == &node) continue;
        const base::DeviceId far = CounterpartOf(gpu, other.gpus.front());
        const auto kind = cluster_.RouteBetween(gpu, far).Kind();
        others.try_emplace(kind, far, 0.0).first->second.second +=
            static_cast<double>(other.gpus.size());
      }
      for (const auto& [kind, far] : others) AddVolume(shape, gpu, far.first, far.second / n);
    }
  }
}

}  // namespace isthmus::sim
