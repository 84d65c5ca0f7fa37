#include "topology/locality.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/unit_literals.h"
#include "topology/cluster.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using base::NodeId;
using base::Rank;
using namespace base::literals;

GroupLocality Of(const ClusterSpec& spec, const std::vector<int>& numbers) {
  std::vector<Rank> ranks;
  for (const int number : numbers) ranks.emplace_back(number);
  return Cluster(spec).Locality(ranks);
}

TEST(Locality, OfAWholeNodeIsNvlinkOnly) {
  const GroupLocality locality = Of(H100Dgx(2), {8, 9, 10, 11, 12, 13, 14, 15});
  EXPECT_EQ(locality, (GroupLocality{.num_ranks = 8,
                                     .num_devices = 8,
                                     .num_nodes = 1,
                                     .min_ranks_per_node = 8,
                                     .max_ranks_per_node = 8,
                                     .num_leaf_groups = 1,
                                     .num_rails = 0,
                                     .min_nics_per_node = 0,
                                     .farthest = PathKind::kNvlink,
                                     .slowest_nvlink = 450_GBps,
                                     .slowest_nic = 0_GBps}));
  EXPECT_TRUE(locality.is_in_one_nvlink_domain());
}

TEST(Locality, OfOneRailUsesOneNicANode) {
  const GroupLocality locality = Of(H100Dgx(40), {1, 9, 17});
  EXPECT_EQ(locality, (GroupLocality{.num_ranks = 3,
                                     .num_devices = 3,
                                     .num_nodes = 3,
                                     .min_ranks_per_node = 1,
                                     .max_ranks_per_node = 1,
                                     .num_leaf_groups = 1,
                                     .num_rails = 1,
                                     .min_nics_per_node = 1,
                                     .farthest = PathKind::kRail,
                                     .slowest_nvlink = 450_GBps,
                                     .slowest_nic = 50_GBps}));
}

TEST(Locality, DoesNotSayWhereNorInWhichOrder) {
  EXPECT_EQ(Of(H100Dgx(40), {1, 9, 17}), Of(H100Dgx(40), {290, 274, 282}));
  EXPECT_NE(Of(H100Dgx(40), {1, 9, 17}), Of(H100Dgx(40), {1, 9, 264}));
}

TEST(Locality, CountsUnevenNodesAndNics) {
  // Nodes 0, 1, 32 with 3, 1 and 2 ranks on rails {0,1,2}, {7}, {0,7}: 4 rails, 1 NIC at least.
  const GroupLocality locality = Of(H100Dgx(40), {0, 1, 2, 15, 256, 263});
  EXPECT_EQ(locality.num_nodes, 3);
  EXPECT_EQ(locality.min_ranks_per_node, 1);
  EXPECT_EQ(locality.max_ranks_per_node, 3);
  EXPECT_EQ(locality.num_rails, 4);
  EXPECT_EQ(locality.min_nics_per_node, 1);
  EXPECT_EQ(locality.num_leaf_groups, 2);
  EXPECT_EQ(locality.farthest, PathKind::kSpine);
}

TEST(Locality, AcrossRailsOfALeafGroup) {
  EXPECT_EQ(Of(H100Dgx(2), {0, 9}).farthest, PathKind::kCrossRail);
  ClusterSpec shared = H100Dgx(2);
  shared.fabric.wiring = LeafWiring::kShared;
  EXPECT_EQ(Of(shared, {0, 9}).farthest, PathKind::kRail);
}

TEST(Locality, TwoGpusOnOneNicShareIt) {
  ClusterSpec spec = H100Dgx(2);
  spec.node_groups[0].nics_per_node = 4;
  const GroupLocality locality = Of(spec, {0, 1, 8, 9});
  EXPECT_EQ(locality.min_ranks_per_node, 2);
  EXPECT_EQ(locality.min_nics_per_node, 1);
}

TEST(Locality, RanksOnOneGpuAreOneDevice) {
  ClusterSpec spec = H100Dgx(1);
  spec.rank_devices = {base::DeviceId{3}, base::DeviceId{3}};
  const GroupLocality locality = Of(spec, {0, 1});
  EXPECT_EQ(locality.num_ranks, 2);
  EXPECT_EQ(locality.num_devices, 1);
  EXPECT_EQ(locality.farthest, PathKind::kSameDevice);
}

TEST(Locality, KnowsDegradedLinksOfItsMembersOnly) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{0}, 1, 0.5},
                      {FaultyPart::kNic, NodeId{1}, 0, 0.25}};
  EXPECT_EQ(Of(spec, {0, 1}).slowest_nvlink, 225_GBps);
  EXPECT_EQ(Of(spec, {0, 2}).slowest_nvlink, 450_GBps);
  EXPECT_EQ(Of(spec, {0, 8}).slowest_nic, 12.5_GBps);
  EXPECT_EQ(Of(spec, {1, 9}).slowest_nic, 50_GBps);
}

TEST(Locality, ALostNicLeavesTheGroupWithOneLess) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNic, NodeId{1}, 0, 0}};
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  EXPECT_EQ(Of(spec, all).min_nics_per_node, 7);
  EXPECT_EQ(Of(spec, all).slowest_nic, 50_GBps);
  // Rail 0 has lost its NIC on node 1 and goes over another rail there.
  EXPECT_EQ(Of(spec, {0, 8}).farthest, PathKind::kCrossRail);
}

TEST(Locality, ANicIsNoFasterThanThePcieLinkBehindIt) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kPcie, NodeId{1}, 0, 0.25}};
  EXPECT_EQ(Of(spec, {0, 8}).slowest_nic, 16_GBps);  // a quarter of 64
  EXPECT_EQ(Of(spec, {1, 9}).slowest_nic, 50_GBps);
  EXPECT_EQ(Of(spec, {0, 1}).slowest_nic, 0_GBps);
  spec.node_groups[0].nic_bandwidth.value = 200_GBps;
  EXPECT_EQ(Of(spec, {1, 9}).slowest_nic, 64_GBps);
}

TEST(Locality, AUplinkMattersOnlyToGroupsThatUseIt) {
  ClusterSpec spec = H100Dgx(40);
  spec.link_faults = {{FaultyPart::kUplink, NodeId{0}, 0, 0}};
  EXPECT_EQ(Of(spec, {0, 8}).num_rails, 1);
  EXPECT_EQ(Of(spec, {0, 8}).farthest, PathKind::kRail);
  EXPECT_EQ(Of(spec, {0, 256}).num_rails, 2);  // out on another rail, in on rail 0
}

TEST(Locality, ADeadNvlinkLeavesTheBandwidthOfTheDetour) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{0}, 1, 0}};
  EXPECT_EQ(Of(spec, {0, 1}).slowest_nvlink, 50_GBps);  // over the network
}

TEST(Locality, OfAGpuThatIsCutOffIsAnError) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{0}, 1, 0}, {FaultyPart::kPcie, NodeId{0}, 1, 0}};
  EXPECT_THROW(Of(spec, {1, 9}), base::Error);
  EXPECT_EQ(Of(spec, {0, 9}).num_nodes, 2);
}

}  // namespace
}  // namespace isthmus::topology
