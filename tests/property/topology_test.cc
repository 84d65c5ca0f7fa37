// Random clusters: arithmetic against search, locality against a brute force, symmetries.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "topology/cluster.h"
#include "topology/graph.h"

namespace isthmus::topology {
namespace {

using base::DeviceId;
using base::LinkId;
using base::NodeId;
using base::RandomStream;
using base::Rank;

constexpr std::uint64_t kNumCases = 800;

int Between(RandomStream& random, int low, int high) {
  return static_cast<int>(random.UniformInt(low, high));
}

Sourced<base::Seconds> RandomLatency(RandomStream& random, int low_ns, int high_ns) {
  return {base::Seconds{Between(random, low_ns, high_ns) * 1e-9}, "random"};
}

Sourced<base::BytesPerSecond> RandomBandwidth(RandomStream& random) {
  return {base::BytesPerSecond{Between(random, 1, 500) * 1e9}, "random"};
}

NodeGroup RandomGroup(RandomStream& random, int index) {
  constexpr std::array kGpus = {1, 2, 4, 8};
  NodeGroup group;
  group.name = "group" + std::string(1, static_cast<char>('0' + index));
  group.num_nodes = Between(random, 1, 6);
  group.gpus_per_node = random.Pick<int>(kGpus);
  group.nics_per_node = group.gpus_per_node;
  while (group.nics_per_node > 1 && random.Chance(0.3)) group.nics_per_node /= 2;
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

ClusterSpec RandomSpec(RandomStream& random) {
  ClusterSpec spec;
  spec.name = "random";
  const int num_groups = Between(random, 1, 3);
  for (int index = 0; index < num_groups; ++index) {
    spec.node_groups.push_back(RandomGroup(random, index));
  }
  spec.fabric.wiring = random.Chance(0.7) ? LeafWiring::kRailOptimised : LeafWiring::kShared;
  spec.fabric.nodes_per_leaf_group = {Between(random, 1, 4), "random"};
  spec.fabric.oversubscription = {1.0 + Between(random, 0, 3), "random"};
  spec.fabric.spine_port_bandwidth = RandomBandwidth(random);
  spec.fabric.hop_latency = RandomLatency(random, 0, 500);
  return spec;
}

// Up to `count` links with 0 (dead) or part of their bandwidth left.
void AddFaults(ClusterSpec& spec, RandomStream& random, int count, double dead) {
  constexpr std::array kParts = {FaultyPart::kNvlink, FaultyPart::kPcie, FaultyPart::kNic,
                                 FaultyPart::kUplink};
  for (int fault = 0; fault < count; ++fault) {
    int node = 0;
    const auto group_index = Between(random, 0, static_cast<int>(spec.node_groups.size()) - 1);
    for (int index = 0; index < group_index; ++index) {
      node += spec.node_groups[static_cast<std::size_t>(index)].num_nodes;
    }
    const NodeGroup& group = spec.node_groups[static_cast<std::size_t>(group_index)];
    node += Between(random, 0, group.num_nodes - 1);
    const FaultyPart part = random.Pick<FaultyPart>(kParts);
    if (part == FaultyPart::kNvlink && group.gpus_per_node == 1) continue;
    const bool is_shared_leaf =
        part == FaultyPart::kUplink && spec.fabric.wiring == LeafWiring::kShared;
    const bool is_of_gpu = part == FaultyPart::kNvlink || part == FaultyPart::kPcie;
    const int count_of_part =
        is_shared_leaf ? 1 : (is_of_gpu ? group.gpus_per_node : group.nics_per_node);
    spec.link_faults.push_back({part, NodeId{node}, Between(random, 0, count_of_part - 1),
                                random.Chance(dead) ? 0 : random.UniformReal()});
  }
}

DeviceId RandomGpu(const Cluster& cluster, RandomStream& random) {
  return DeviceId{Between(random, 0, cluster.num_gpus() - 1)};
}

std::int64_t CostOf(const Route& route) {
  std::int64_t cost = 0;
  for (const Link& link : route.links) cost += RoutingCost(link);
  return cost;
}

// A chain of live links of the cluster, whose bandwidth is the least of them.
void CheckRoute(const Cluster& cluster, const Route& route) {
  DeviceId here = route.from;
  double least = 1e300;
  double latency = 0;
  for (const Link& link : route.links) {
    ASSERT_EQ(link.from, here);
    ASSERT_EQ(link, cluster.LinkAt(link.id));
    ASSERT_GT(link.bandwidth.value(), 0);
    least = std::min(least, link.bandwidth.value());
    latency += link.latency.value();
    here = link.to;
  }
  ASSERT_EQ(here, route.to);
  if (!route.links.empty()) {
    ASSERT_EQ(route.Bandwidth().value().value(), least);
  }
  ASSERT_DOUBLE_EQ(route.Latency().value(), latency);
}

void CheckRoutesOf(const Cluster& cluster, RandomStream& random) {
  const ClusterGraph graph(cluster);
  for (int pair = 0; pair < 20; ++pair) {
    const DeviceId from = RandomGpu(cluster, random);
    const DeviceId to = RandomGpu(cluster, random);
    SCOPED_TRACE(testing::Message() << from.value() << " -> " << to.value());
    const std::optional<Route> route = cluster.FindRoute(from, to);
    const std::optional<Route> back = cluster.FindRoute(to, from);
    const std::optional<Route> searched = graph.Shortest(from, to);
    ASSERT_EQ(route.has_value(), searched.has_value());
    ASSERT_EQ(route.has_value(), back.has_value());
    if (!route) continue;
    CheckRoute(cluster, *route);
    CheckRoute(cluster, *back);
    ASSERT_EQ(CostOf(*route), CostOf(*searched));
    ASSERT_EQ(CostOf(*route), CostOf(*back));
  }
}

TEST(TopologyProperty, ArithmeticRoutesAreTheShortestOfTheGraph) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.routes");
    CheckRoutesOf(Cluster(RandomSpec(random)), random);
    if (HasFatalFailure()) return;
  }
}

TEST(TopologyProperty, RoutesRoundDeadLinksAreTheShortestOfTheGraph) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.faults");
    ClusterSpec spec = RandomSpec(random);
    AddFaults(spec, random, 8, 0.8);
    CheckRoutesOf(Cluster(spec), random);
    if (HasFatalFailure()) return;
  }
}

TEST(TopologyProperty, EveryLinkLeavesOneDeviceAndHasAWayBack) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.links");
    const Cluster cluster(RandomSpec(random));
    std::map<LinkId, DeviceId> origins;
    for (DeviceId device{0}; device.value() < cluster.num_devices(); ++device) {
      EXPECT_EQ(cluster.DeviceAt(device).id, device);
      for (const LinkId link : cluster.LinksFrom(device)) {
        EXPECT_EQ(cluster.LinkAt(link).from, device);
        EXPECT_TRUE(origins.emplace(link, device).second) << "link " << link.value();
      }
    }
    for (const auto& [link, origin] : origins) {
      const LinkId back{link.value() ^ 1};
      ASSERT_EQ(origins.count(back), 1U) << "link " << link.value();
      EXPECT_EQ(cluster.LinkAt(back).to, origin);
      EXPECT_EQ(cluster.LinkAt(back).from, cluster.LinkAt(link).to);
    }
    int without_nvlink = 0;
    for (const NodeGroup& group : cluster.spec().node_groups) {
      without_nvlink += group.gpus_per_node == 1 ? group.num_nodes : 0;
    }
    EXPECT_EQ(static_cast<int>(origins.size()), cluster.num_links() - 2 * without_nvlink);
  }
}

// Where each GPU is if the nodes of every leaf group change places among themselves.
std::vector<DeviceId> PermuteNodes(const Cluster& cluster, RandomStream& random) {
  std::map<int, std::vector<NodeId>> leaf_groups;
  std::map<NodeId, DeviceId> first_gpus;
  for (DeviceId gpu{0}; gpu.value() < cluster.num_gpus(); ++gpu) {
    if (!first_gpus.emplace(cluster.NodeOf(gpu), gpu).second) continue;
    leaf_groups[cluster.DeviceAt(gpu).leaf_group.value()].push_back(cluster.NodeOf(gpu));
  }
  std::map<NodeId, NodeId> moved;
  for (const auto& [leaf_group, nodes] : leaf_groups) {
    std::vector<NodeId> shuffled = nodes;
    random.Shuffle<NodeId>(shuffled);
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      moved.emplace(nodes[index], shuffled[index]);
    }
  }
  std::vector<DeviceId> gpus;
  for (DeviceId gpu{0}; gpu.value() < cluster.num_gpus(); ++gpu) {
    const DeviceId first = first_gpus.at(moved.at(cluster.NodeOf(gpu)));
    gpus.emplace_back(first.value() + cluster.LocalIndexOf(gpu));
  }
  return gpus;
}

std::vector<Rank> RandomRanks(const Cluster& cluster, RandomStream& random) {
  std::vector<Rank> ranks;
  for (Rank rank{0}; rank.value() < cluster.num_ranks(); ++rank) ranks.push_back(rank);
  random.Shuffle<Rank>(ranks);
  ranks.resize(static_cast<std::size_t>(Between(random, 1, cluster.num_ranks())));
  if (random.Chance(0.5)) std::sort(ranks.begin(), ranks.end());
  return ranks;
}

TEST(TopologyProperty, PermutingNodeIdsChangesNothing) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.permute");
    const Cluster cluster(RandomSpec(random));
    const std::vector<DeviceId> moved = PermuteNodes(cluster, random);
    for (int pair = 0; pair < 20; ++pair) {
      const DeviceId from = RandomGpu(cluster, random);
      const DeviceId to = RandomGpu(cluster, random);
      const Route route = cluster.RouteBetween(from, to);
      const Route other = cluster.RouteBetween(moved[from.index()], moved[to.index()]);
      EXPECT_EQ(route.Kind(), other.Kind());
      EXPECT_EQ(route.Bandwidth(), other.Bandwidth());
      EXPECT_EQ(CostOf(route), CostOf(other));
    }
    const std::vector<Rank> ranks = RandomRanks(cluster, random);
    std::vector<Rank> others;
    for (const Rank rank : ranks) others.emplace_back(moved[rank.index()].value());
    EXPECT_EQ(cluster.Locality(ranks), cluster.Locality(others));
  }
}

// The locality by sets, and the farthest pair by the routes themselves. Needs living links.
GroupLocality SlowLocality(const Cluster& cluster, const std::vector<Rank>& ranks) {
  std::set<DeviceId> gpus;
  std::map<NodeId, int> ranks_of_node;
  std::map<NodeId, std::set<DeviceId>> nics_of_node;
  std::set<int> leaf_groups;
  std::set<int> rails;
  std::set<base::BytesPerSecond> nvlinks;
  std::set<base::BytesPerSecond> nics;
  for (const Rank rank : ranks) {
    const DeviceId gpu = cluster.DeviceOf(rank);
    const DeviceId nic = cluster.NicOf(gpu).value();
    gpus.insert(gpu);
    ++ranks_of_node[cluster.NodeOf(gpu)];
    nics_of_node[cluster.NodeOf(gpu)].insert(nic);
    leaf_groups.insert(cluster.DeviceAt(gpu).leaf_group.value());
    rails.insert(cluster.DeviceAt(nic).index);
    nics.insert(cluster.LinkAt(cluster.LinksFrom(nic).back()).bandwidth);
    if (cluster.NodeGroupOf(gpu).gpus_per_node > 1) {
      nvlinks.insert(cluster.LinkAt(cluster.LinksFrom(gpu).front()).bandwidth);
    }
  }
  GroupLocality locality;
  locality.num_ranks = static_cast<int>(ranks.size());
  locality.num_devices = static_cast<int>(gpus.size());
  locality.num_nodes = static_cast<int>(ranks_of_node.size());
  locality.num_leaf_groups = static_cast<int>(leaf_groups.size());
  locality.min_ranks_per_node = ranks_of_node.begin()->second;
  locality.min_nics_per_node = static_cast<int>(nics_of_node.begin()->second.size());
  for (const auto& [node, count] : ranks_of_node) {
    locality.min_ranks_per_node = std::min(locality.min_ranks_per_node, count);
    locality.max_ranks_per_node = std::max(locality.max_ranks_per_node, count);
    locality.min_nics_per_node =
        std::min(locality.min_nics_per_node, static_cast<int>(nics_of_node[node].size()));
  }
  for (const DeviceId from : gpus) {
    for (const DeviceId to : gpus) {
      locality.farthest = std::max(locality.farthest, cluster.RouteBetween(from, to).Kind());
    }
  }
  if (!nvlinks.empty()) locality.slowest_nvlink = *nvlinks.begin();
  if (locality.num_nodes > 1) {
    locality.num_rails = static_cast<int>(rails.size());
    locality.slowest_nic = *nics.begin();
  } else {
    locality.min_nics_per_node = 0;
  }
  return locality;
}

TEST(TopologyProperty, LocalityEqualsABruteForce) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.locality");
    ClusterSpec spec = RandomSpec(random);
    AddFaults(spec, random, 5, 0);
    if (random.Chance(0.3)) {  // several ranks on a GPU, in no order
      const int num_gpus = Cluster(spec).num_gpus();
      for (int rank = 0; rank < num_gpus; ++rank) {
        spec.rank_devices.emplace_back(Between(random, 0, num_gpus - 1));
      }
    }
    const Cluster cluster(spec);
    const std::vector<Rank> ranks = RandomRanks(cluster, random);
    GroupLocality expected = SlowLocality(cluster, ranks);
    const GroupLocality locality = cluster.Locality(ranks);
    // Where the spine is nearer than NVLink, cross-rail traffic takes it within a leaf group too.
    if (locality.farthest == PathKind::kCrossRail && expected.farthest == PathKind::kSpine) {
      expected.farthest = PathKind::kCrossRail;
    }
    EXPECT_EQ(locality, expected);
  }
}

}  // namespace
}  // namespace isthmus::topology
