// Fabrics of several switches and tiers, NVLink domains of several nodes, and their faults.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/unit_literals.h"
#include "tests/unit/topology/expect_mistake.h"
#include "topology/cluster.h"
#include "topology/describe.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using base::DeviceId;
using base::NodeId;
using base::Rank;
using namespace base::literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Leaf groups of 2 nodes, pods of 2 leaf groups: 7 nodes are leaf groups of 2, 2, 2 and 1 nodes and
// two pods. A leaf (a rail of 2 NICs of 50 GB/s) has 100 GB/s below it.
ClusterSpec ThreeTiers(int num_nodes = 7) {
  ClusterSpec spec = H100Dgx(num_nodes);
  spec.fabric.nodes_per_leaf_group = {2, "test"};
  CoreTier core;
  core.leaf_groups_per_pod = {2, "test"};
  core.oversubscription = {1, "test"};
  core.port_bandwidth = {50_GBps, "test"};
  core.hop_latency = {500_ns, "test"};
  spec.fabric.core = core;
  return spec;
}

ClusterSpec WithEcmp(ClusterSpec spec, int num_spines, int num_cores, std::uint64_t seed = 1) {
  spec.fabric.num_spines = {num_spines, "test"};
  spec.fabric.ecmp = Ecmp{seed};
  if (spec.fabric.core) spec.fabric.core->num_cores = {num_cores, "test"};
  return spec;
}

// 2 racks of 3 trays of 4 GPUs and 4 NICs, and a rack of 2 trays.
ClusterSpec Racks() {
  ClusterSpec spec = H100Dgx(8);
  NodeGroup& group = spec.node_groups.front();
  group.gpus_per_node = 4;
  group.nics_per_node = 4;
  group.nodes_per_nvlink_domain = 3;
  spec.fabric.nodes_per_leaf_group = {6, "test"};
  return spec;
}

std::vector<std::string> Fabric(const Cluster& cluster, int from, int to) {
  std::vector<std::string> labels;
  for (const Link& link : cluster.RouteBetween(DeviceId{from}, DeviceId{to}).links) {
    const Device device = cluster.DeviceAt(link.to);
    if (device.kind >= DeviceKind::kLeaf) labels.push_back(LabelOf(device));
  }
  return labels;
}

Link UplinkOf(const Cluster& cluster, int leaf, int spine = 0) {
  std::vector<Link> uplinks;
  for (const base::LinkId id : cluster.LinksFrom(cluster.DeviceNumbered(DeviceKind::kLeaf, leaf))) {
    if (cluster.LinkAt(id).kind == LinkKind::kUplink) uplinks.push_back(cluster.LinkAt(id));
  }
  return uplinks.at(static_cast<std::size_t>(spine));
}

Link CoreLinkOf(const Cluster& cluster, int spine, int core = 0) {
  std::vector<Link> links;
  for (const base::LinkId id :
       cluster.LinksFrom(cluster.DeviceNumbered(DeviceKind::kSpine, spine))) {
    if (cluster.LinkAt(id).kind == LinkKind::kCore) links.push_back(cluster.LinkAt(id));
  }
  return links.at(static_cast<std::size_t>(core));
}

TEST(Fabric, OfThreeTiersIsCrossedFromPodToPod) {
  const Cluster cluster(ThreeTiers());
  EXPECT_EQ(cluster.num_leaf_groups(), 4);
  EXPECT_EQ(cluster.num_pods(), 2);
  EXPECT_EQ(cluster.CountOf(DeviceKind::kSpine), 2);
  EXPECT_EQ(cluster.CountOf(DeviceKind::kCore), 1);
  EXPECT_THAT(Fabric(cluster, 0, 8), ElementsAre("leaf 0.0"));
  EXPECT_THAT(Fabric(cluster, 0, 16), ElementsAre("leaf 0.0", "spine 0", "leaf 1.0"));
  EXPECT_THAT(Fabric(cluster, 1, 34),
              ElementsAre("leaf 0.1", "spine 0", "core", "spine 1", "leaf 2.2"));
  const Route route = cluster.RouteBetween(DeviceId{0}, DeviceId{55});
  EXPECT_EQ(route.Kind(), PathKind::kCore);
  // 4 x 0.3 PCIe + 2 x 0.8 NIC + 2 x 0.3 leaf to spine + 2 x 0.5 spine to core.
  EXPECT_NEAR(route.Latency().value() * 1e6, 4.4, 1e-9);
}

TEST(Fabric, OversubscriptionOfEachTierIsInItsPorts) {
  ClusterSpec spec = ThreeTiers(8);
  // 2 ports up of a leaf; a pod has 2 x 8 leaves x 100 GB/s = 1.6 TB/s up: 32 ports.
  EXPECT_EQ(UplinkOf(Cluster(spec), 0).bandwidth, 100_GBps);
  EXPECT_EQ(CoreLinkOf(Cluster(spec), 0).bandwidth, 1600_GBps);
  // Half of 64 NICs, of 4 x 8 leaves and of 2 pods: all 1.6 TB/s.
  EXPECT_EQ(Bisection(Cluster(spec)), 1600_GBps);
  spec.fabric.core->oversubscription = {4, "test"};
  EXPECT_EQ(CoreLinkOf(Cluster(spec), 0).bandwidth, 400_GBps);
  EXPECT_EQ(Bisection(Cluster(spec)), 400_GBps);
  spec.fabric.oversubscription = {2, "test"};  // and half of that below the cores too
  EXPECT_EQ(UplinkOf(Cluster(spec), 0).bandwidth, 50_GBps);
  EXPECT_EQ(CoreLinkOf(Cluster(spec), 0).bandwidth, 200_GBps);
  EXPECT_EQ(Bisection(Cluster(spec)), 200_GBps);
}

TEST(Fabric, ThreeToOneHasAThirdOfTheBisection) {
  ClusterSpec spec = H100Dgx(12);
  spec.fabric.nodes_per_leaf_group = {6, "test"};  // 6 x 50 GB/s a leaf
  EXPECT_EQ(Bisection(Cluster(spec)), 2400_GBps);  // half of 96 NICs
  spec.fabric.oversubscription = {3, "test"};
  EXPECT_EQ(UplinkOf(Cluster(spec), 0).bandwidth, 100_GBps);
  EXPECT_EQ(Bisection(Cluster(spec)), 800_GBps);  // half of 16 leaves
}

TEST(Fabric, SpinesShareThePortsOfALeaf) {
  ClusterSpec spec = H100Dgx(64);  // 32 ports of 50 GB/s a leaf
  const Cluster even(WithEcmp(spec, 8, 0));
  EXPECT_EQ(even.CountOf(DeviceKind::kSpine), 8);
  EXPECT_EQ(UplinkOf(even, 3, 7).bandwidth, 200_GBps);
  // 32 ports don't divide by 5: 7 each.
  EXPECT_EQ(UplinkOf(Cluster(WithEcmp(spec, 5, 0)), 0, 4).bandwidth, 350_GBps);
  spec.fabric.num_spines = {5, "test"};  // as one device
  EXPECT_EQ(UplinkOf(Cluster(spec), 0).bandwidth, 1750_GBps);
}

TEST(Ecmp, AJourneyKeepsToItsPlane) {
  const Cluster cluster(WithEcmp(ThreeTiers(), 2, 6));
  EXPECT_EQ(cluster.CountOf(DeviceKind::kSpine), 4);
  EXPECT_EQ(cluster.CountOf(DeviceKind::kCore), 6);
  std::set<std::string> cores;
  for (int from = 0; from < 32; ++from) {
    for (int to = 32; to < 56; ++to) {
      const std::vector<std::string> path = Fabric(cluster, from, to);
      ASSERT_EQ(path.size(), 5U);
      // Spine s of both pods is joined to cores 3 s to 3 s + 2.
      const int spine = path[1].back() - '0';
      const int core = path[2].back() - '0';
      EXPECT_EQ(path[1], "spine 0." + std::to_string(spine));
      EXPECT_EQ(path[3], "spine 1." + std::to_string(spine));
      EXPECT_EQ(core / 3, spine);
      cores.insert(path[2]);
    }
  }
  EXPECT_EQ(cores.size(), 6U);
}

TEST(Ecmp, PathsAreThoseOfThePairOfNics) {
  ClusterSpec spec = WithEcmp(H100Dgx(64), 16, 0);
  spec.node_groups[0].nics_per_node = 4;  // GPUs 0 and 1 have NIC 0
  const Cluster cluster(spec);
  EXPECT_EQ(Fabric(cluster, 0, 256), Fabric(cluster, 1, 257));
  EXPECT_EQ(Fabric(cluster, 0, 256), Fabric(Cluster(spec), 0, 256));
  const auto paths = [&spec](std::uint64_t seed) {
    spec.fabric.ecmp->seed = seed;
    std::vector<std::string> all;
    for (int gpu = 0; gpu < 32; ++gpu) all.push_back(Fabric(Cluster(spec), gpu, 256 + gpu)[1]);
    return all;
  };
  EXPECT_NE(paths(1), paths(2));
}

TEST(NvlinkDomain, OfSeveralNodesIsOneNvswitch) {
  const Cluster cluster(Racks());
  EXPECT_EQ(cluster.num_nvlink_domains(), 3);
  EXPECT_EQ(cluster.CountOf(DeviceKind::kNvSwitch), 3);
  EXPECT_TRUE(cluster.AreInOneNvlinkDomain(DeviceId{0}, DeviceId{11}));
  EXPECT_FALSE(cluster.AreInOneNvlinkDomain(DeviceId{11}, DeviceId{12}));
  const Route route = cluster.RouteBetween(DeviceId{0}, DeviceId{11});
  EXPECT_EQ(route.Kind(), PathKind::kNvlink);
  EXPECT_EQ(LabelOf(cluster.DeviceAt(route.links.front().to)), "nvswitch 0");
  // The last rack has 2 trays: nodes 6 and 7.
  EXPECT_EQ(cluster.LinksFrom(cluster.DeviceNumbered(DeviceKind::kNvSwitch, 2)).size(), 8U);
  EXPECT_THAT(Fabric(cluster, 0, 12), ElementsAre("leaf 0.0"));
  EXPECT_THAT(Fabric(cluster, 0, 24), ElementsAre("leaf 0.0", "spine", "leaf 1.0"));
  // Rail 0 to rail 1: over NVLink to GPU 0.1, which is on rail 1.
  EXPECT_EQ(cluster.RouteBetween(DeviceId{0}, DeviceId{13}).links[1].to, DeviceId{1});
}

TEST(NvlinkDomain, CountsAsANodeOfAGroup) {
  const Cluster cluster(Racks());
  const auto locality = [&cluster](int first, int last) {
    std::vector<Rank> ranks;
    for (int rank = first; rank <= last; ++rank) ranks.emplace_back(rank);
    return cluster.Locality(ranks);
  };
  EXPECT_TRUE(locality(0, 11).is_in_one_nvlink_domain());
  EXPECT_EQ(locality(0, 11).num_nodes, 1);
  const GroupLocality two = locality(0, 23);
  EXPECT_EQ(two.num_nodes, 2);
  EXPECT_EQ(two.min_ranks_per_node, 12);
  EXPECT_EQ(two.min_nics_per_node, 12);  // 3 trays x 4
  EXPECT_EQ(two.num_rails, 4);
  EXPECT_EQ(two.farthest, PathKind::kCrossRail);
  EXPECT_EQ(locality(0, 31).min_ranks_per_node, 8);
  EXPECT_EQ(locality(0, 31).farthest, PathKind::kSpine);
}

TEST(NvlinkDomain, OfSingleGpuNodesHasNvlinkAndNeedsNoNics) {
  ClusterSpec spec = H100Dgx(5);
  NodeGroup& group = spec.node_groups.front();
  group.gpus_per_node = 1;
  group.nics_per_node = 0;
  group.nodes_per_nvlink_domain = 8;
  EXPECT_EQ(Cluster(spec).RouteBetween(DeviceId{0}, DeviceId{4}).Kind(), PathKind::kNvlink);
}

TEST(NvlinkDomain, ALostNicIsReplacedByOneOfTheRack) {
  ClusterSpec spec = Racks();
  for (int nic = 0; nic < 4; ++nic) {
    spec.link_faults.push_back({FaultyPart::kNic, NodeId{0}, nic, 0});
  }
  const Cluster cluster(spec);
  const Route route = cluster.RouteBetween(DeviceId{0}, DeviceId{12});
  EXPECT_EQ(route.Kind(), PathKind::kCrossRail);
  EXPECT_NE(cluster.NodeOf(route.links[1].to), NodeId{0});
  EXPECT_EQ(cluster.NvlinkDomainOf(route.links[1].to), 0);
}

TEST(DeadSwitch, LeavesTheLayerItsShare) {
  ClusterSpec spec = ThreeTiers();
  spec.fabric.num_spines = {4, "test"};
  spec.fabric.core->num_cores = {8, "test"};
  // A leaf has one port to each of 4 spines; a pod 2 x 8 x 200 GB/s, 8 ports to each of 8 cores.
  EXPECT_EQ(UplinkOf(Cluster(spec), 0).bandwidth, 200_GBps);
  EXPECT_EQ(CoreLinkOf(Cluster(spec), 0).bandwidth, 3200_GBps);
  spec.link_faults = {{FaultyPart::kSpine, NodeId{5}, 1, 0}};
  const Cluster spine(spec);
  EXPECT_EQ(UplinkOf(spine, 0).bandwidth, 200_GBps);   // of the other pod
  EXPECT_EQ(UplinkOf(spine, 16).bandwidth, 150_GBps);  // leaf 2.0, pod 1
  EXPECT_EQ(CoreLinkOf(spine, 1).bandwidth, 2400_GBps);
  spec.link_faults = {{FaultyPart::kCore, NodeId{0}, 7, 0.5}};
  EXPECT_EQ(CoreLinkOf(Cluster(spec), 0).bandwidth, 3000_GBps);  // 1/16 less
  EXPECT_EQ(CoreLinkOf(Cluster(spec), 1).bandwidth, 3000_GBps);
  spec.link_faults = {{FaultyPart::kUplink, NodeId{0}, 2, 0, 3},
                      {FaultyPart::kUplink, NodeId{1}, 2, 0, 1}};
  EXPECT_EQ(UplinkOf(Cluster(spec), 2).bandwidth, 100_GBps);
  spec.link_faults = {{FaultyPart::kUplink, NodeId{0}, 2, 0}};
  EXPECT_TRUE(UplinkOf(Cluster(spec), 2).is_dead());
}

TEST(DeadSwitch, IsAvoidedByEcmp) {
  ClusterSpec spec = WithEcmp(ThreeTiers(), 2, 4);
  spec.link_faults = {{FaultyPart::kSpine, NodeId{0}, 1, 0}, {FaultyPart::kCore, NodeId{0}, 0, 0}};
  const Cluster cluster(spec);
  for (int to = 16; to < 56; ++to) {
    const std::vector<std::string> path = Fabric(cluster, 0, to);
    EXPECT_EQ(path[1], "spine 0.0");
    if (path.size() > 3) {
      EXPECT_EQ(path[2], "core 1");  // the live one of plane 0
    }
  }
  EXPECT_THAT(Fabric(cluster, 32, 48), ElementsAre("leaf 2.0", testing::_, "leaf 3.0"));
}

// Spines of two planes, each of which one leaf has lost: there is no way up and down between them.
TEST(DeadSwitch, DataDoesNotTurnUpAgain) {
  ClusterSpec spec = WithEcmp(H100Dgx(4), 2, 0);
  spec.fabric.nodes_per_leaf_group = {2, "test"};
  spec.fabric.wiring = LeafWiring::kShared;
  spec.link_faults = {{FaultyPart::kUplink, NodeId{0}, 0, 0, 0},
                      {FaultyPart::kUplink, NodeId{2}, 0, 0, 1}};
  const Cluster cluster(spec);
  try {
    cluster.RouteBetween(DeviceId{0}, DeviceId{16});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(),
                 "cluster h100-dgx: dead links cut GPU 0 off from GPU 16: leaf 0.0 -> spine "
                 "0.0, spine 0.1 -> leaf 1.0\n  hint: give one of them a bandwidth_factor "
                 "above 0, or don't use the node");
  }
}

TEST(FabricErrors, SayWhatWasFoundAndWhatToDo) {
  const std::map<std::string, std::function<void(ClusterSpec&)>> cases = {
      {"fabric.num_spines: found 0", [](ClusterSpec& s) { s.fabric.num_spines.value = 0; }},
      {"fabric.core.num_cores: 3 is not a multiple of num_spines 2",
       [](ClusterSpec& s) {
         s.fabric.num_spines.value = 2;
         s.fabric.core->num_cores.value = 3;
       }},
      {"fabric.core.leaf_groups_per_pod: found 0",
       [](ClusterSpec& s) { s.fabric.core->leaf_groups_per_pod.value = 0; }},
      {"fabric.core.oversubscription: found 0.5",
       [](ClusterSpec& s) { s.fabric.core->oversubscription.value = 0.5; }},
      {"fabric.core.port_bandwidth: 0 B/s is not a bandwidth",
       [](ClusterSpec& s) { s.fabric.core->port_bandwidth.value = 0_GBps; }},
      {"fabric.core.hop_latency: has no source",
       [](ClusterSpec& s) { s.fabric.core->hop_latency.source.clear(); }},
      {"fabric.num_spines: 16384 spines over about 1048584 leaves",
       [](ClusterSpec& s) {
         s.node_groups[0].num_nodes = 1 << 17;
         s.fabric.nodes_per_leaf_group.value = 1;
         s.fabric.num_spines.value = 16384;
       }},
      {"node_groups.dgx.nodes_per_nvlink_domain: 3 does not divide the fabric's "
       "nodes_per_leaf_group 2",
       [](ClusterSpec& s) { s.node_groups[0].nodes_per_nvlink_domain = 3; }},
      {"node_groups.dgx.nodes_per_nvlink_domain: found 0",
       [](ClusterSpec& s) { s.node_groups[0].nodes_per_nvlink_domain = 0; }},
      {"link_faults.0.to: only uplinks and core links",
       [](ClusterSpec& s) {
         s.link_faults = {{FaultyPart::kNic, NodeId{0}, 0, 0, 1}};
       }},
      {"link_faults.0.to: no switch 1 at the far end\n  hint: it is joined to 0 to 0",
       [](ClusterSpec& s) {
         s.link_faults = {{FaultyPart::kUplink, NodeId{0}, 0, 0, 1}};
       }},
      {"link_faults.0.index: found 1, and node 0 has 1 of these",
       [](ClusterSpec& s) {
         s.link_faults = {{FaultyPart::kCore, NodeId{0}, 1, 0}};
       }},
      {"link_faults.0.index: found 0, and node 0 has 0 of these",
       [](ClusterSpec& s) {
         s.fabric.core.reset();
         s.link_faults = {{FaultyPart::kCoreLink, NodeId{0}, 0, 0}};
       }},
  };
  for (const auto& [text, spoil] : cases) {
    ClusterSpec spec = ThreeTiers();
    spoil(spec);
    ExpectMistake(spec, text);
  }
}

}  // namespace
}  // namespace isthmus::topology
