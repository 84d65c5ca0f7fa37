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
#include "tests/support/random_cluster.h"
#include "topology/cluster.h"
#include "topology/graph.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using base::DeviceId;
using base::LinkId;
using base::NodeId;
using base::RandomStream;
using base::Rank;

constexpr std::uint64_t kNumCases = 800;

DeviceId RandomGpu(const Cluster& cluster, RandomStream& random) {
  return DeviceId{tests::Between(random, 0, cluster.num_gpus() - 1)};
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
    CheckRoutesOf(Cluster(tests::RandomCluster(random)), random);
    if (HasFatalFailure()) return;
  }
}

TEST(TopologyProperty, RoutesRoundDeadLinksAreTheShortestOfTheGraph) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.faults");
    ClusterSpec spec = tests::RandomCluster(random);
    tests::AddFaults(spec, random, 8, 0.8);
    CheckRoutesOf(Cluster(spec), random);
    if (HasFatalFailure()) return;
  }
}

TEST(TopologyProperty, RoutesOfEqualTraitsHaveEqualFigures) {
  int num_alike = 0;
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.traits");
    const Cluster cluster(tests::RandomCluster(random));
    std::map<RouteTraits, Route> routes;
    for (int pair = 0; pair < 40; ++pair) {
      const DeviceId from = RandomGpu(cluster, random);
      const DeviceId to = RandomGpu(cluster, random);
      const Route route = cluster.RouteBetween(from, to);
      const auto [at, is_new] = routes.emplace(cluster.TraitsOfRoute(from, to).value(), route);
      num_alike += is_new ? 0 : 1;
      ASSERT_EQ(route.Kind(), at->second.Kind());
      ASSERT_EQ(route.Bandwidth(), at->second.Bandwidth());
      ASSERT_EQ(route.Latency(), at->second.Latency());  // to the bit: the same sum
    }
  }
  EXPECT_GT(num_alike, static_cast<int>(kNumCases) * 10);
}

TEST(TopologyProperty, NothingFollowsFromTraitsAmongFaultsOrInACustomFabric) {
  RandomStream random(1, "topology.traits");
  ClusterSpec faulty = tests::RandomCluster(random);
  EXPECT_TRUE(Cluster(faulty).TraitsOfRoute(DeviceId{0}, DeviceId{0}));
  EXPECT_FALSE(Cluster(tests::AsCustom(faulty)).TraitsOfRoute(DeviceId{0}, DeviceId{0}));
  faulty.link_faults.push_back({.part = FaultyPart::kPcie, .bandwidth_factor = 0.5});
  EXPECT_FALSE(Cluster(faulty).TraitsOfRoute(DeviceId{0}, DeviceId{0}));
}

TEST(TopologyProperty, EveryLinkLeavesOneDeviceAndHasAWayBack) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.links");
    const Cluster cluster(tests::RandomCluster(random));
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
      const bool is_alone = group.gpus_per_node == 1 && group.nodes_per_nvlink_domain == 1;
      without_nvlink += is_alone ? group.num_nodes : 0;
    }
    EXPECT_EQ(static_cast<int>(origins.size()), cluster.num_links() - 2 * without_nvlink);
  }
}

// Where each GPU is if the nodes of every leaf group, or of an NVLink domain of several, change
// places among themselves.
std::vector<DeviceId> PermuteNodes(const Cluster& cluster, RandomStream& random) {
  std::map<std::pair<int, int>, std::vector<NodeId>> leaf_groups;
  std::map<NodeId, DeviceId> first_gpus;
  for (DeviceId gpu{0}; gpu.value() < cluster.num_gpus(); ++gpu) {
    if (!first_gpus.emplace(cluster.NodeOf(gpu), gpu).second) continue;
    const bool is_single = cluster.NodeGroupOf(gpu).nodes_per_nvlink_domain == 1;
    leaf_groups[{cluster.DeviceAt(gpu).leaf_group.value(),
                 is_single ? -1 : cluster.NvlinkDomainOf(gpu)}]
        .push_back(cluster.NodeOf(gpu));
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
  ranks.resize(static_cast<std::size_t>(tests::Between(random, 1, cluster.num_ranks())));
  if (random.Chance(0.5)) std::sort(ranks.begin(), ranks.end());
  return ranks;
}

TEST(TopologyProperty, PermutingNodeIdsChangesNothing) {
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.permute");
    const Cluster cluster(tests::RandomCluster(random));
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
  std::map<int, int> ranks_of_node;  // NVLink domains count as nodes
  std::map<int, std::set<DeviceId>> nics_of_node;
  std::set<int> leaf_groups;
  std::set<int> rails;
  std::set<base::BytesPerSecond> nvlinks;
  std::set<base::BytesPerSecond> nics;
  for (const Rank rank : ranks) {
    const DeviceId gpu = cluster.DeviceOf(rank);
    const DeviceId nic = cluster.NicOf(gpu).value();
    const int domain = cluster.NvlinkDomainOf(gpu);
    gpus.insert(gpu);
    ++ranks_of_node[domain];
    nics_of_node[domain].insert(nic);
    leaf_groups.insert(cluster.DeviceAt(gpu).leaf_group.value());
    rails.insert(cluster.DeviceAt(nic).index);
    nics.insert(cluster.LinkAt(cluster.LinksFrom(nic).back()).bandwidth);
    nics.insert(cluster.RouteToHost(gpu).links.front().bandwidth);  // PCIe
    const NodeGroup& group = cluster.NodeGroupOf(gpu);
    if (group.gpus_per_node > 1 || group.nodes_per_nvlink_domain > 1) {
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
    ClusterSpec spec = tests::RandomCluster(random);
    tests::AddFaults(spec, random, 5, 0);
    if (random.Chance(0.3)) {  // several ranks on a GPU, in no order
      const int num_gpus = Cluster(spec).num_gpus();
      for (int rank = 0; rank < num_gpus; ++rank) {
        spec.rank_devices.emplace_back(tests::Between(random, 0, num_gpus - 1));
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

// How many routes from the first half of the GPUs to the second, the same rail, cross each device.
std::map<std::string, int> Loads(const Cluster& cluster, DeviceKind kind, int stride) {
  std::map<std::string, int> loads;
  const int half = cluster.num_gpus() / 2;
  for (int from = 0; from < half; from += stride) {
    for (int to = half; to < cluster.num_gpus(); to += stride) {
      for (const Link& link : cluster.RouteBetween(DeviceId{from}, DeviceId{to}).links) {
        const Device device = cluster.DeviceAt(link.to);
        if (device.kind == kind) ++loads[LabelOf(device)];
      }
    }
  }
  return loads;
}

// 64 nodes x 64 nodes of one rail over 8 spines: 512 routes each on average. A fair draw is off by
// sqrt(512 x 7/8) = 21; 5 of those are allowed.
TEST(TopologyProperty, EcmpDealsPairsEvenly) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ClusterSpec spec = H100Dgx(128);
    spec.fabric.num_spines = {8, "test"};
    spec.fabric.ecmp = Ecmp{seed};
    spec.fabric.nodes_per_leaf_group = {64, "test"};
    const auto loads = Loads(Cluster(spec), DeviceKind::kSpine, 8);
    EXPECT_EQ(loads.size(), 8U);
    for (const auto& [spine, load] : loads) EXPECT_NEAR(load, 512, 105) << spine;
    // Of a dead spine's 512 each of 7 others takes an equal part: 4,096 / 7 = 585.
    spec.link_faults = {{FaultyPart::kSpine, NodeId{0}, 3, 0}};
    const auto others = Loads(Cluster(spec), DeviceKind::kSpine, 8);
    EXPECT_EQ(others.size(), 7U);
    for (const auto& [spine, load] : others) EXPECT_NEAR(load, 585, 112) << spine;
  }
}

TEST(TopologyProperty, EcmpIsAFunctionOfNicsAndSeed) {
  for (std::uint64_t seed = 0; seed < kNumCases / 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.ecmp");
    ClusterSpec spec = tests::RandomCluster(random);
    if (!spec.fabric.ecmp) continue;
    tests::AddFaults(spec, random, 3, 0.5);
    const Cluster cluster(spec);
    const Cluster again(spec);
    for (int pair = 0; pair < 20; ++pair) {
      const DeviceId from = RandomGpu(cluster, random);
      const DeviceId to = RandomGpu(cluster, random);
      EXPECT_EQ(cluster.FindRoute(from, to), again.FindRoute(from, to));
    }
  }
}

// Each layer's cables written one by one make the same fabric.
TEST(TopologyProperty, CustomFabricsOfTheSameCablesHaveTheSameRoutes) {
  for (std::uint64_t seed = 0; seed < kNumCases / 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.custom");
    const ClusterSpec spec = tests::RandomCluster(random);
    const Cluster cluster(spec);
    const Cluster custom(tests::AsCustom(spec));
    EXPECT_EQ(custom.num_links(), cluster.num_links());
    for (int pair = 0; pair < 20; ++pair) {
      const DeviceId from = RandomGpu(cluster, random);
      const DeviceId to = RandomGpu(cluster, random);
      SCOPED_TRACE(testing::Message() << from.value() << " -> " << to.value());
      const Route route = cluster.RouteBetween(from, to);
      const Route other = custom.RouteBetween(from, to);
      ASSERT_EQ(CostOf(other), CostOf(route));
      ASSERT_EQ(other.Kind(), std::min(route.Kind(), PathKind::kSpine));
      ASSERT_EQ(other.Bandwidth(), route.Bandwidth());
    }
    CheckRoutesOf(custom, random);
    if (HasFatalFailure()) return;
  }
}

TEST(TopologyProperty, CustomRoutesRoundDeadLinksAreTheShortestOfTheGraph) {
  for (std::uint64_t seed = 0; seed < kNumCases / 2; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, "topology.custom_faults");
    ClusterSpec spec = tests::AsCustom(tests::RandomCluster(random));
    tests::AddFaults(spec, random, 8, 0.8);
    CheckRoutesOf(Cluster(spec), random);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace isthmus::topology
