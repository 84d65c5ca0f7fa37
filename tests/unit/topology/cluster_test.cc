#include "topology/cluster.h"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/unit_literals.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using base::DeviceId;
using base::NodeId;
using base::Rank;
using namespace base::literals;
using ::testing::HasSubstr;

// Two unequal node groups: 3 nodes of 8 GPUs with 4 NICs, then 2 nodes of 2 GPUs with 2 NICs.
ClusterSpec TwoGroups() {
  ClusterSpec spec = H100Dgx(3);
  spec.node_groups[0].name = "llm";
  spec.node_groups[0].nics_per_node = 4;
  spec.node_groups.push_back(A100Dgx(2).node_groups[0]);
  spec.node_groups[1].name = "encoder";
  spec.node_groups[1].gpus_per_node = 2;
  spec.node_groups[1].nics_per_node = 2;
  return spec;
}

std::string ErrorOf(const std::function<void(ClusterSpec&)>& spoil) {
  ClusterSpec spec = H100Dgx(2);
  spoil(spec);
  try {
    const Cluster cluster(spec);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Cluster, CountsDevicesAndLinks) {
  const Cluster cluster(H100Dgx(2));
  EXPECT_EQ(cluster.num_nodes(), 2);
  EXPECT_EQ(cluster.num_gpus(), 16);
  EXPECT_EQ(cluster.num_ranks(), 16);
  EXPECT_EQ(cluster.num_leaf_groups(), 1);
  // 16 GPUs, 2 NVSwitches, 16 PCIe switches, 16 NICs, 2 hosts, 8 leaves, 1 spine.
  EXPECT_EQ(cluster.num_devices(), 61);
  // Cables: NVLink 16, PCIe 16 of GPUs + 16 to hosts + 16 to NICs, NIC 16, uplinks 8; two ways.
  EXPECT_EQ(cluster.num_links(), 2 * 88);
}

TEST(Cluster, NumbersGpusNodeByNodeAndGroupByGroup) {
  const Cluster cluster(TwoGroups());
  ASSERT_EQ(cluster.num_gpus(), 3 * 8 + 2 * 2);
  EXPECT_EQ(cluster.NodeOf(DeviceId{23}), NodeId{2});
  EXPECT_EQ(cluster.LocalIndexOf(DeviceId{23}), 7);
  // GPU 26 is the third of the second group: its node 1, which is node 4, local GPU 0.
  EXPECT_EQ(cluster.NodeOf(DeviceId{26}), NodeId{4});
  EXPECT_EQ(cluster.LocalIndexOf(DeviceId{26}), 0);
  EXPECT_EQ(cluster.NodeGroupOf(DeviceId{26}).name, "encoder");
  EXPECT_TRUE(cluster.AreInOneNvlinkDomain(DeviceId{24}, DeviceId{25}));
  EXPECT_FALSE(cluster.AreInOneNvlinkDomain(DeviceId{25}, DeviceId{26}));
}

TEST(Cluster, DealsGpusToNicsInBlocks) {
  const Cluster cluster(TwoGroups());
  // 8 GPUs and 4 NICs: GPUs 0, 1 have NIC 0, …, GPUs 6, 7 NIC 3.
  for (const auto& [gpu, node, nic] :
       {std::array{0, 0, 0}, {1, 0, 0}, {2, 0, 1}, {15, 1, 3}, {24, 3, 0}, {27, 4, 1}}) {
    const Device device = cluster.DeviceAt(cluster.NicOf(DeviceId{gpu}).value());
    EXPECT_EQ(device.kind, DeviceKind::kNic);
    EXPECT_EQ(device.node, NodeId{node}) << gpu;
    EXPECT_EQ(device.index, nic) << gpu;
  }
}

TEST(Cluster, EachNodeGroupStartsALeafGroup) {
  ClusterSpec spec = TwoGroups();
  spec.fabric.nodes_per_leaf_group.value = 2;
  const Cluster cluster(spec);
  // 3 nodes by 2 are 2 leaf groups, the other 2 nodes a third.
  EXPECT_EQ(cluster.num_leaf_groups(), 3);
  EXPECT_EQ(cluster.DeviceAt(DeviceId{16}).leaf_group, 1);
  EXPECT_EQ(cluster.DeviceAt(DeviceId{24}).leaf_group, 2);
  EXPECT_EQ(cluster.CountOf(DeviceKind::kLeaf), 4 + 4 + 2);
}

TEST(Cluster, UplinksAreWholePortsForTheOversubscription) {
  ClusterSpec spec = H100Dgx(2);
  const auto uplink = [&spec] {
    const Cluster cluster(spec);
    const DeviceId leaf = cluster.DeviceNumbered(DeviceKind::kLeaf, 0);
    return cluster.LinkAt(cluster.LinksFrom(leaf).back());
  };
  EXPECT_EQ(uplink().kind, LinkKind::kUplink);
  EXPECT_EQ(uplink().bandwidth, 1600_GBps);  // 32 NICs of 50 GB/s down, as much up
  spec.fabric.oversubscription.value = 3;
  EXPECT_EQ(uplink().bandwidth, 550_GBps);  // 1600 / 3 / 50 = 10.7, so 11 ports
  spec.fabric.wiring = LeafWiring::kShared;
  spec.fabric.oversubscription.value = 1;
  EXPECT_EQ(uplink().bandwidth, 12800_GBps);  // 32 × 8 NICs on one leaf switch
}

TEST(Cluster, PlacesRankROnGpuRUnlessToldOtherwise) {
  EXPECT_EQ(Cluster(H100Dgx(1)).DeviceOf(Rank{5}), DeviceId{5});
  ClusterSpec spec = H100Dgx(1);
  spec.rank_devices = {DeviceId{3}, DeviceId{3}, DeviceId{0}};
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.num_ranks(), 3);
  EXPECT_EQ(cluster.DeviceOf(Rank{1}), DeviceId{3});
  EXPECT_EQ(cluster.DeviceOf(Rank{2}), DeviceId{0});
}

TEST(Cluster, RefusesARankWithoutAGpu) {
  const Cluster cluster(H100Dgx(2));
  try {
    cluster.DeviceOf(Rank{16});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(),
                 "cluster h100-dgx: rank 16 has no GPU: there is room for 16 ranks\n"
                 "  hint: add nodes or use a layout of at most 16 ranks");
  }
}

TEST(Cluster, SlowGpusAndFaultyLinksAreItsFacts) {
  ClusterSpec spec = H100Dgx(2);
  spec.slow_gpus = {{DeviceId{9}, 0.75}, {DeviceId{2}, 0.5}};
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{1}, 3, 0.5},
                      {FaultyPart::kNic, NodeId{0}, 2, 0}};
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.SpeedFactorOf(DeviceId{2}), 0.5);
  EXPECT_EQ(cluster.SpeedFactorOf(DeviceId{9}), 0.75);
  EXPECT_EQ(cluster.SpeedFactorOf(DeviceId{3}), 1);
  // GPU 11 is local GPU 3 of node 1.
  EXPECT_EQ(cluster.LinkAt(cluster.LinksFrom(DeviceId{11}).front()).bandwidth, 225_GBps);
  EXPECT_EQ(cluster.LinkAt(cluster.LinksFrom(DeviceId{3}).front()).bandwidth, 450_GBps);
  const DeviceId nic = cluster.NicOf(DeviceId{2}).value();
  EXPECT_TRUE(cluster.LinkAt(cluster.LinksFrom(nic).back()).is_dead());
}

TEST(Cluster, CopiesKeepTheirOwnFacts) {
  std::optional<Cluster> original(TwoGroups());
  const Cluster copy = *original;
  original.reset();
  EXPECT_EQ(copy.NodeGroupOf(DeviceId{24}).name, "encoder");
}

TEST(ClusterErrors, SayWhatWasFoundAndWhatToDo) {
  EXPECT_EQ(ErrorOf([](ClusterSpec& spec) { spec.node_groups[0].num_nodes = 0; }),
            "cluster h100-dgx: node_groups.dgx.num_nodes: found 0\n  hint: use 1 to 1048576");
  const std::map<std::string, std::function<void(ClusterSpec&)>> cases = {
      {"node_groups: is empty", [](ClusterSpec& s) { s.node_groups.clear(); }},
      {"gpus_per_node: found -8", [](ClusterSpec& s) { s.node_groups[0].gpus_per_node = -8; }},
      {"nics_per_node: 3 does not divide gpus_per_node 8",
       [](ClusterSpec& s) { s.node_groups[0].nics_per_node = 3; }},
      {"nodes without NICs can't reach each other",
       [](ClusterSpec& s) { s.node_groups[0].nics_per_node = 0; }},
      {"add up to 16000000 GPUs", [](ClusterSpec& s) { s.node_groups[0].num_nodes = 2'000'000; }},
      {"is used twice", [](ClusterSpec& s) { s.node_groups.push_back(s.node_groups[0]); }},
      {"gpu: no GPU is named", [](ClusterSpec& s) { s.node_groups[0].gpu.clear(); }},
      {"nic_bandwidth: -1 B/s is not a bandwidth",
       [](ClusterSpec& s) { s.node_groups[0].nic_bandwidth.value = base::BytesPerSecond{-1}; }},
      {"pcie_bandwidth: nan B/s is not a bandwidth",
       [](ClusterSpec& s) {
         s.node_groups[0].pcie_bandwidth.value = base::BytesPerSecond{std::nan("")};
       }},
      {"nic_bandwidth: has no source",
       [](ClusterSpec& s) { s.node_groups[0].nic_bandwidth.source.clear(); }},
      {"without NVLink are not built yet",
       [](ClusterSpec& s) { s.node_groups[0].nvlink_bandwidth.value = 0_GBps; }},
      {"nvlink_latency: is larger than pcie_latency",
       [](ClusterSpec& s) { s.node_groups[0].nvlink_latency.value = 5_us; }},
      {"hop_latency: 2 s is not the latency of a link",
       [](ClusterSpec& s) { s.fabric.hop_latency.value = 2_s; }},
      {"oversubscription: found 0.5",
       [](ClusterSpec& s) { s.fabric.oversubscription.value = 0.5; }},
      {"nodes_per_leaf_group: found 0",
       [](ClusterSpec& s) { s.fabric.nodes_per_leaf_group.value = 0; }},
      {"link_faults.0.node: there is no node 2",
       [](ClusterSpec& s) {
         s.link_faults = {{FaultyPart::kNic, NodeId{2}, 0, 0}};
       }},
      {"link_faults.0.index: found 8, and node 1 has 8 of these",
       [](ClusterSpec& s) {
         s.link_faults = {{FaultyPart::kNic, NodeId{1}, 8, 0}};
       }},
      {"link_faults.0.bandwidth_factor: found 1.5",
       [](ClusterSpec& s) {
         s.link_faults = {{FaultyPart::kPcie, NodeId{1}, 7, 1.5}};
       }},
      {"slow_gpus.0.gpu: there is no GPU 16",
       [](ClusterSpec& s) {
         s.slow_gpus = {{DeviceId{16}, 0.5}};
       }},
      {"slow_gpus.0.speed_factor: found 0",
       [](ClusterSpec& s) {
         s.slow_gpus = {{DeviceId{1}, 0}};
       }},
      {"slow_gpus.1.gpu: GPU 1 is named twice",
       [](ClusterSpec& s) {
         s.slow_gpus = {{DeviceId{1}, 0.5}, {DeviceId{1}, 0.5}};
       }},
      {"jitter.compute.deviation: found -0.1",
       [](ClusterSpec& s) { s.jitter = Jitter{.compute = {.deviation = -0.1}}; }},
      {"jitter.communication.stall.probability: found 1.5",
       [](ClusterSpec& s) {
         s.jitter = Jitter{.communication = {.stall = {{.probability = 1.5}}}};
       }},
      {"jitter.compute.stall.time: found 7200 s",
       [](ClusterSpec& s) {
         s.jitter = Jitter{.compute = {.stall = {{.probability = 0.1, .time = 7200_s}}}};
       }},
      {"rank_devices.1: there is no GPU 99",
       [](ClusterSpec& s) {
         s.rank_devices = {DeviceId{0}, DeviceId{99}};
       }},
  };
  for (const auto& [text, spoil] : cases) {
    EXPECT_THAT(ErrorOf(spoil), HasSubstr(text));
    EXPECT_THAT(ErrorOf(spoil), HasSubstr("\n  hint: ")) << text;
  }
}

TEST(ClusterErrors, ListsAllMistakes) {
  const std::string text = ErrorOf([](ClusterSpec& spec) {
    spec.name.clear();
    spec.node_groups[0].source.clear();
    spec.fabric.oversubscription.value = 0;
  });
  EXPECT_THAT(text, HasSubstr("cluster (unnamed): name: is empty"));
  EXPECT_THAT(text, HasSubstr("source: has no source"));
  EXPECT_THAT(text, HasSubstr("oversubscription: found 0"));
}

// One machine whose ranks share its cores.
ClusterSpec Host() {
  ClusterSpec spec;
  spec.name = "host";
  spec.ranks_share = RanksShare::kCores;
  spec.cores = 4;
  spec.node_groups = {{.name = "host",
                       .gpus_per_node = 1,
                       .nics_per_node = 0,
                       .gpu = "cpu-host",
                       .source = "test"}};
  return spec;
}

TEST(ClusterTest, RanksOfAHostShareItsOneDevice) {
  const Cluster cluster(Host());
  EXPECT_EQ(cluster.num_ranks(), kMaxSharingRanks);
  EXPECT_EQ(cluster.DeviceOf(Rank(0)), DeviceId(0));
  EXPECT_EQ(cluster.DeviceOf(Rank(7)), DeviceId(0));
  const std::array ranks = {Rank(0), Rank(3), Rank(5)};
  const GroupLocality group = cluster.Locality(ranks);
  EXPECT_EQ(group.num_ranks, 3);
  EXPECT_EQ(group.num_devices, 1);
  EXPECT_EQ(group.num_nodes, 1);
  EXPECT_TRUE(cluster.RouteBetween(DeviceId(0), DeviceId(0)).links.empty());
}

TEST(ClusterTest, RanksShareOneDeviceOrNone) {
  ClusterSpec two = Host();
  two.node_groups[0].num_nodes = 2;
  EXPECT_THROW(Cluster{two}, base::Error);
  ClusterSpec placed = Host();
  placed.rank_devices = {DeviceId(0)};
  EXPECT_THROW(Cluster{placed}, base::Error);
  EXPECT_THAT(ErrorOf([](ClusterSpec& spec) { spec.cores = 2; }),
              HasSubstr("only ranks_share: cores has cores"));
}

}  // namespace
}  // namespace isthmus::topology
