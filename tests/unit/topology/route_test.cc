#include "topology/route.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/unit_literals.h"
#include "topology/cluster.h"
#include "topology/graph.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using base::DeviceId;
using base::NodeId;
using namespace base::literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> DevicesOf(const Cluster& cluster, const Route& route) {
  std::vector<std::string> labels = {LabelOf(cluster.DeviceAt(route.from))};
  for (const Link& link : route.links) labels.push_back(LabelOf(cluster.DeviceAt(link.to)));
  return labels;
}

Route Between(const Cluster& cluster, int from, int to) {
  return cluster.RouteBetween(DeviceId{from}, DeviceId{to});
}

void ExpectFigures(const Route& route, PathKind kind, base::BytesPerSecond bandwidth,
                   double latency_us) {
  EXPECT_EQ(route.Kind(), kind);
  EXPECT_EQ(route.Bandwidth(), bandwidth);
  EXPECT_NEAR(route.Latency().value() * 1e6, latency_us, 1e-9);
}

TEST(Route, ToItselfCrossesNothing) {
  const Route route = Between(Cluster(H100Dgx(1)), 3, 3);
  EXPECT_EQ(route.Kind(), PathKind::kSameDevice);
  EXPECT_TRUE(route.links.empty());
  EXPECT_EQ(route.Bandwidth(), std::nullopt);
  EXPECT_EQ(route.Latency(), 0_s);
}

TEST(Route, InANodeIsNvlinkUpAndDown) {
  const Cluster cluster(H100Dgx(1));
  const Route route = Between(cluster, 0, 7);
  EXPECT_THAT(DevicesOf(cluster, route), ElementsAre("gpu 0.0", "nvswitch 0", "gpu 0.7"));
  ExpectFigures(route, PathKind::kNvlink, 450_GBps, 0.5);  // 2 × 0.25 us
}

TEST(Route, OnARailGoesThroughOneLeaf) {
  const Cluster cluster(H100Dgx(2));
  const Route route = Between(cluster, 2, 10);
  EXPECT_THAT(DevicesOf(cluster, route),
              ElementsAre("gpu 0.2", "pcie-switch 0.2", "nic 0.2", "leaf 0.2", "nic 1.2",
                          "pcie-switch 1.2", "gpu 1.2"));
  ExpectFigures(route, PathKind::kRail, 50_GBps, 2.8);  // 4 × 0.3 us PCIe + 2 × 0.8 us NIC
}

TEST(Route, AcrossRailsTurnsOverNvlinkFirst) {
  const Cluster cluster(H100Dgx(2));
  const Route route = Between(cluster, 2, 13);
  EXPECT_THAT(DevicesOf(cluster, route),
              ElementsAre("gpu 0.2", "nvswitch 0", "gpu 0.5", "pcie-switch 0.5", "nic 0.5",
                          "leaf 0.5", "nic 1.5", "pcie-switch 1.5", "gpu 1.5"));
  ExpectFigures(route, PathKind::kCrossRail, 50_GBps, 3.3);  // as on a rail + 2 × 0.25 us NVLink
}

TEST(Route, AcrossRailsTakesTheSpineWhereThatIsNearer) {
  ClusterSpec spec = H100Dgx(2);
  spec.fabric.hop_latency.value = 200_ns;  // two of them beat two NVLinks of 250 ns
  const Route route = Between(Cluster(spec), 2, 13);
  ExpectFigures(route, PathKind::kSpine, 50_GBps, 3.2);
  EXPECT_EQ(route.links.size(), 8U);
}

TEST(Route, ToAnotherLeafGroupGoesThroughTheSpine) {
  const Cluster cluster(H100Dgx(40));
  const Route route = Between(cluster, 2, 33 * 8 + 5);
  EXPECT_THAT(DevicesOf(cluster, route),
              ElementsAre("gpu 0.2", "pcie-switch 0.2", "nic 0.2", "leaf 0.2", "spine", "leaf 1.5",
                          "nic 33.5", "pcie-switch 33.5", "gpu 33.5"));
  ExpectFigures(route, PathKind::kSpine, 50_GBps, 3.4);  // as on a rail + 2 × 0.3 us
}

TEST(Route, UnderASharedLeafNeedsNoOtherRail) {
  ClusterSpec spec = H100Dgx(2);
  spec.fabric.wiring = LeafWiring::kShared;
  ExpectFigures(Between(Cluster(spec), 2, 13), PathKind::kRail, 50_GBps, 2.8);
}

TEST(Route, IsLimitedByPcieWhereTheNicIsFaster) {
  ClusterSpec spec = A100Dgx(2);
  spec.node_groups[0].nic_bandwidth.value = 400_Gbps;
  EXPECT_EQ(Between(Cluster(spec), 0, 8).Bandwidth(), 32_GBps);
}

TEST(Route, ToTheHostSharesTheGpusPcieLinkWithItsNic) {
  const Cluster cluster(H100Dgx(2));
  const Route out = cluster.RouteToHost(DeviceId{9});
  EXPECT_THAT(DevicesOf(cluster, out), ElementsAre("gpu 1.1", "pcie-switch 1.1", "host 1"));
  ExpectFigures(out, PathKind::kPcie, 64_GBps, 0.6);
  EXPECT_EQ(out.links[0], Between(cluster, 9, 1).links[0]);
  const Route back = cluster.RouteFromHost(DeviceId{9});
  EXPECT_THAT(DevicesOf(cluster, back), ElementsAre("host 1", "pcie-switch 1.1", "gpu 1.1"));
  EXPECT_NE(back.links[1].id, out.links[0].id);  // each direction is a link of its own
}

TEST(DeadLinks, ALostNicIsReplacedByANeighboursOverNvlink) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNic, NodeId{0}, 2, 0}};
  const Cluster cluster(spec);
  const Route route = Between(cluster, 2, 13);
  EXPECT_FALSE(route.CrossesDeadLink());
  ExpectFigures(route, PathKind::kCrossRail, 50_GBps, 3.3);  // cross-rail never used NIC 0.2
  // To its own rail: NVLink to some rail, and NVLink back on the other node.
  ExpectFigures(Between(cluster, 2, 10), PathKind::kCrossRail, 50_GBps, 3.8);
  ExpectFigures(Between(cluster, 10, 2), PathKind::kCrossRail, 50_GBps, 3.8);
}

TEST(DeadLinks, AGpuWithoutNvlinkTalksToItsNodeOverTheNetwork) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{0}, 2, 0}};
  const Route route = Between(Cluster(spec), 2, 3);
  // Out of NIC 2, over the spine to rail 3, into NIC 3.
  ExpectFigures(route, PathKind::kSpine, 50_GBps, 3.4);
}

TEST(DeadLinks, ADeadUplinkIsPassedOnAnotherRail) {
  ClusterSpec spec = H100Dgx(40);
  spec.link_faults = {{FaultyPart::kUplink, NodeId{5}, 2, 0}};
  const Route route = Between(Cluster(spec), 2, 33 * 8 + 2);
  ExpectFigures(route, PathKind::kSpine, 50_GBps, 3.9);  // as to another leaf group + 2 NVLinks
}

TEST(DeadLinks, WhatIsCutOffIsAnError) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{0}, 2, 0}, {FaultyPart::kNic, NodeId{0}, 2, 0}};
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.FindRoute(DeviceId{2}, DeviceId{3}), std::nullopt);
  try {
    Between(cluster, 2, 3);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("dead links cut GPU 2 off from GPU 3: gpu 0.2 -> nvswitch "
                                        "0, nic 0.2 -> leaf 0.2\n  hint: "));
  }
  EXPECT_EQ(cluster.RouteToHost(DeviceId{2}).links.size(), 2U);
}

TEST(DeadLinks, NoCopyWithoutPcie) {
  ClusterSpec spec = H100Dgx(1);
  spec.link_faults = {{FaultyPart::kPcie, NodeId{0}, 2, 0}};
  EXPECT_THROW(Cluster(spec).RouteToHost(DeviceId{2}), base::Error);
  EXPECT_THROW(Cluster(spec).RouteFromHost(DeviceId{2}), base::Error);
}

TEST(ClusterGraph, FindsTheIslandsThatDeadLinksMake) {
  ClusterSpec spec = H100Dgx(2);
  EXPECT_EQ(ClusterGraph(Cluster(spec)).GpuIslands().size(), 1U);
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{1}, 2, 0}, {FaultyPart::kPcie, NodeId{1}, 2, 0}};
  const Cluster cluster(spec);
  const auto islands = ClusterGraph(cluster).GpuIslands();
  ASSERT_EQ(islands.size(), 2U);
  EXPECT_EQ(islands[0].size(), 15U);
  EXPECT_THAT(islands[1], ElementsAre(DeviceId{10}));
}

TEST(ClusterGraph, DrawsEveryCableOnce) {
  ClusterSpec spec = H100Dgx(1);
  spec.node_groups[0].gpus_per_node = 2;
  spec.node_groups[0].nics_per_node = 1;
  // GPUs 0 and 1 on NVSwitch 2 and PCIe switch 3, NIC 4, host 5, leaf 6, spine 7.
  EXPECT_EQ(ClusterGraph(Cluster(spec)).Dot(),
            "graph cluster {\n"
            "  d0 [label=\"gpu 0.0\"];\n"
            "  d1 [label=\"gpu 0.1\"];\n"
            "  d2 [label=\"nvswitch 0\"];\n"
            "  d3 [label=\"pcie-switch 0.0\"];\n"
            "  d4 [label=\"nic 0.0\"];\n"
            "  d5 [label=\"host 0\"];\n"
            "  d6 [label=\"leaf 0.0\"];\n"
            "  d7 [label=\"spine\"];\n"
            "  d0 -- d2 [label=\"nvlink 450 GB/s\"];\n"
            "  d1 -- d2 [label=\"nvlink 450 GB/s\"];\n"
            "  d0 -- d3 [label=\"pcie 64.0 GB/s\"];\n"
            "  d1 -- d3 [label=\"pcie 64.0 GB/s\"];\n"
            "  d3 -- d5 [label=\"pcie 64.0 GB/s\"];\n"
            "  d3 -- d4 [label=\"pcie 64.0 GB/s\"];\n"
            "  d4 -- d6 [label=\"nic 50.0 GB/s\"];\n"
            "  d6 -- d7 [label=\"uplink 1.60 TB/s\"];\n"
            "}\n");
}

TEST(ClusterGraph, QuotesWhatNamesHold) {
  ClusterSpec spec = H100Dgx(1);
  const std::string name = R"(the "big" one\two)";
  CustomFabric custom;
  custom.switches = {name};
  custom.cables.push_back({.from = "nic *.*", .to = name});
  spec.fabric.custom = custom;
  EXPECT_THAT(ClusterGraph(Cluster(spec)).Dot(), HasSubstr(R"([label="the \"big\" one\\two"];)"));
}

}  // namespace
}  // namespace isthmus::topology
