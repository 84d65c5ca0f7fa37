#include "topology/describe.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/unit_literals.h"
#include "topology/picture.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using base::DeviceId;
using base::NodeId;
using base::Rank;
using namespace base::literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DescribeCluster, H100DgxAcrossTwoLeafGroups) {
  // 40 nodes are leaf groups of 32 and 8 nodes. Bisection: half of 320 NICs of 50 GB/s. Graph: per
  // node 8 GPUs, NVSwitch, 8 PCIe switches, 8 NICs, host; 16 leaves, spine: 40 × 26 + 17. Links per
  // node: 2 × 5 × 8; 2 × 16 uplinks.
  EXPECT_EQ(DescribeCluster(Cluster(H100Dgx(40))),
            "cluster h100-dgx: 40 nodes, 320 GPUs\n"
            "\n"
            "node group dgx: nodes 0 to 39, GPUs 0 to 319\n"
            "  a node             8 x h100-sxm, 8 NICs [1]\n"
            "  NVLink of a GPU     450 GB/s [2]    250 ns [3]\n"
            "  PCIe of a GPU      64.0 GB/s [4]    300 ns [5]\n"
            "  NIC                50.0 GB/s [6]    800 ns [7]\n"
            "\n"
            "fabric: leaf and spine, one leaf switch for each rail of a leaf group\n"
            "  a leaf group       32 nodes [8]\n"
            "  in this cluster    2 leaf groups, 16 leaf switches\n"
            "  oversubscription   1 : 1 [9]\n"
            "  port to the spine  50.0 GB/s [10]   300 ns [11]\n"
            "  ports of a leaf    1.60 TB/s together\n"
            "  bisection          8.00 TB/s\n"
            "\n"
            "kinds of paths between GPUs, nearest first\n"
            "  nvlink              450 GB/s        500 ns   2 links, as GPU 0 to 1\n"
            "  rail               50.0 GB/s       2.80 us   6 links, as GPU 0 to 8\n"
            "  cross-rail         50.0 GB/s       3.30 us   8 links, as GPU 0 to 9\n"
            "  spine              50.0 GB/s       3.40 us   8 links, as GPU 0 to 256\n"
            "\n"
            "faults: none\n"
            "graph: 1,057 devices, 3,232 directed links; every GPU reaches every other\n"
            "\n"
            "sources (bandwidths are per direction)\n"
            "  [1] NVIDIA DGX H100 data sheet\n"
            "  [2] NVIDIA H100 SXM data sheet: 900 GB/s both directions\n"
            "  [3] assumed: half of a GPU-to-GPU path through NVSwitch\n"
            "  [4] NVIDIA H100 SXM data sheet: Gen5 x16, 128 GB/s both directions\n"
            "  [5] assumed: one PCIe hop\n"
            "  [6] NVIDIA DGX H100 data sheet: ConnectX-7 at 400 Gb/s\n"
            "  [7] assumed: NIC, cable and leaf switch, about 3 us GPU to GPU\n"
            "  [8] assumed: NVIDIA DGX SuperPOD H100 reference RA-11333-001, scalable unit\n"
            "  [9] assumed: non-blocking, as the DGX SuperPOD reference\n"
            "  [10] NVIDIA QM9700 data sheet: NDR port\n"
            "  [11] assumed: cable and spine switch\n");
}

TEST(DescribeCluster, H200DgxOfOneNode) {
  EXPECT_EQ(DescribeCluster(Cluster(H200Dgx(1))),
            "cluster h200-dgx: 1 node, 8 GPUs\n"
            "\n"
            "node group dgx: node 0, GPUs 0 to 7\n"
            "  a node             8 x h200-sxm, 8 NICs [1]\n"
            "  NVLink of a GPU     450 GB/s [2]    250 ns [3]\n"
            "  PCIe of a GPU      64.0 GB/s [4]    300 ns [5]\n"
            "  NIC                50.0 GB/s [6]    800 ns [7]\n"
            "\n"
            "fabric: leaf and spine, one leaf switch for each rail of a leaf group\n"
            "  a leaf group       32 nodes [8]\n"
            "  in this cluster    1 leaf group, 8 leaf switches\n"
            "  oversubscription   1 : 1 [9]\n"
            "  port to the spine  50.0 GB/s [10]   300 ns [11]\n"
            "  ports of a leaf    1.60 TB/s together\n"
            "\n"
            "kinds of paths between GPUs, nearest first\n"
            "  nvlink              450 GB/s        500 ns   2 links, as GPU 0 to 1\n"
            "\n"
            "faults: none\n"
            "graph: 35 devices, 96 directed links; every GPU reaches every other\n"
            "\n"
            "sources (bandwidths are per direction)\n"
            "  [1] NVIDIA DGX H200 data sheet\n"
            "  [2] NVIDIA H200 SXM data sheet: 900 GB/s both directions\n"
            "  [3] assumed: half of a GPU-to-GPU path through NVSwitch\n"
            "  [4] NVIDIA H200 SXM data sheet: Gen5 x16, 128 GB/s both directions\n"
            "  [5] assumed: one PCIe hop\n"
            "  [6] NVIDIA DGX H200 data sheet: ConnectX-7 at 400 Gb/s\n"
            "  [7] assumed: NIC, cable and leaf switch, about 3 us GPU to GPU\n"
            "  [8] assumed: NVIDIA DGX SuperPOD H100 reference RA-11333-001, scalable unit\n"
            "  [9] assumed: non-blocking, as the DGX SuperPOD reference\n"
            "  [10] NVIDIA QM9700 data sheet: NDR port\n"
            "  [11] assumed: cable and spine switch\n");
}

TEST(DescribeCluster, A100DgxInOneLeafGroup) {
  // Bisection: half of 16 NICs of 25 GB/s.
  EXPECT_EQ(DescribeCluster(Cluster(A100Dgx(2))),
            "cluster a100-dgx: 2 nodes, 16 GPUs\n"
            "\n"
            "node group dgx: nodes 0 to 1, GPUs 0 to 15\n"
            "  a node             8 x a100-sxm, 8 NICs [1]\n"
            "  NVLink of a GPU     300 GB/s [2]    250 ns [3]\n"
            "  PCIe of a GPU      32.0 GB/s [4]    300 ns [5]\n"
            "  NIC                25.0 GB/s [6]    800 ns [7]\n"
            "\n"
            "fabric: leaf and spine, one leaf switch for each rail of a leaf group\n"
            "  a leaf group       20 nodes [8]\n"
            "  in this cluster    1 leaf group, 8 leaf switches\n"
            "  oversubscription   1 : 1 [9]\n"
            "  port to the spine  25.0 GB/s [10]   300 ns [11]\n"
            "  ports of a leaf     500 GB/s together\n"
            "  bisection           200 GB/s\n"
            "\n"
            "kinds of paths between GPUs, nearest first\n"
            "  nvlink              300 GB/s        500 ns   2 links, as GPU 0 to 1\n"
            "  rail               25.0 GB/s       2.80 us   6 links, as GPU 0 to 8\n"
            "  cross-rail         25.0 GB/s       3.30 us   8 links, as GPU 0 to 9\n"
            "\n"
            "faults: none\n"
            "graph: 61 devices, 176 directed links; every GPU reaches every other\n"
            "\n"
            "sources (bandwidths are per direction)\n"
            "  [1] NVIDIA DGX A100 data sheet\n"
            "  [2] NVIDIA A100 SXM data sheet: 600 GB/s both directions\n"
            "  [3] assumed: half of a GPU-to-GPU path through NVSwitch\n"
            "  [4] NVIDIA A100 SXM data sheet: Gen4 x16, 64 GB/s both directions\n"
            "  [5] assumed: one PCIe hop\n"
            "  [6] NVIDIA DGX A100 data sheet: ConnectX-6 at 200 Gb/s\n"
            "  [7] assumed: NIC, cable and leaf switch, about 3 us GPU to GPU\n"
            "  [8] assumed: NVIDIA DGX SuperPOD A100 reference RA-10333-001, scalable unit\n"
            "  [9] assumed: non-blocking, as the DGX SuperPOD reference\n"
            "  [10] NVIDIA QM8700 data sheet: HDR port\n"
            "  [11] assumed: cable and spine switch\n");
}

TEST(DescribeCluster, ListsFaultsAndWhatTheyCutOff) {
  ClusterSpec spec = H100Dgx(2);
  spec.link_faults = {{FaultyPart::kNvlink, NodeId{1}, 3, 0},
                      {FaultyPart::kPcie, NodeId{1}, 3, 0},
                      {FaultyPart::kNic, NodeId{0}, 2, 0.5},
                      {FaultyPart::kUplink, NodeId{0}, 7, 0}};
  spec.slow_gpus = {{DeviceId{5}, 0.9}};
  spec.jitter = Jitter{.seed = 7, .compute = {.deviation = 0.03, .stall = {{0.001, 2_ms}}}};
  EXPECT_THAT(
      DescribeCluster(Cluster(spec)),
      HasSubstr("faults\n"
                "  node 1             NVLink of local GPU 3: dead\n"
                "  node 1             PCIe of local GPU 3: dead\n"
                "  node 0             NIC 2: 50.0 % of its bandwidth\n"
                "  node 0             uplink of leaf switch 7: dead\n"
                "  GPU 5              computes at 90.0 % of its speed\n"
                "  jitter             seed 7; compute: lognormal, deviation 3.0 %, stalls of "
                "2.00 ms with probability 0.001; communication: steady\n"
                // GPU 11 is local GPU 3 of node 1; three dead cables of 88.
                "graph: 61 devices, 170 directed links; cut off are GPUs 11\n"));
}

TEST(DescribeCluster, SaysWhoPlacedTheRanks) {
  ClusterSpec spec = H100Dgx(1);
  EXPECT_THAT(DescribeCluster(Cluster(spec)), Not(HasSubstr("ranks:")));
  spec.rank_devices = {DeviceId{1}, DeviceId{0}};
  EXPECT_THAT(DescribeCluster(Cluster(spec)),
              HasSubstr("ranks: 2, placed by the cluster's own list\n"));
}

TEST(Bisection, IsWhatTheNarrowerOfNicsAndUplinksCarries) {
  EXPECT_EQ(Bisection(Cluster(H100Dgx(1))), 0_GBps);
  EXPECT_EQ(Bisection(Cluster(H100Dgx(2))), 400_GBps);  // half of 16 × 50 GB/s
  ClusterSpec spec = H100Dgx(64);
  EXPECT_EQ(Bisection(Cluster(spec)), 12800_GBps);  // half of 512 × 50 GB/s
  spec.fabric.oversubscription.value = 2;
  EXPECT_EQ(Bisection(Cluster(spec)), 6400_GBps);  // half of 16 leaves × 16 ports × 50 GB/s
}

TEST(DescribeCluster, SaysWhatWholePortsMakeOfTheOversubscription) {
  ClusterSpec spec = H100Dgx(4);
  spec.fabric.nodes_per_leaf_group = {4, "test"};
  spec.fabric.oversubscription = {100, "test"};
  // 200 GB/s over 100 is 2 GB/s: one port of 50 GB/s.
  EXPECT_THAT(DescribeCluster(Cluster(spec)),
              AllOf(HasSubstr("oversubscription   100 : 1 asked, 4 : 1 with whole ports ["),
                    HasSubstr("ports of a leaf    50.0 GB/s together\n")));
  EXPECT_THAT(DrawCluster(Cluster(spec)),
              HasSubstr("leaf to spine 100 : 1 asked, 4 : 1 with whole ports"));
  spec.fabric.oversubscription = {4, "test"};
  EXPECT_THAT(DescribeCluster(Cluster(spec)), HasSubstr("oversubscription   4 : 1 ["));
  // What faults leave is no matter of ports.
  spec.link_faults = {{FaultyPart::kUplink, NodeId{0}, 0, 0.5}};
  EXPECT_THAT(DescribeCluster(Cluster(spec)), HasSubstr("oversubscription   4 : 1 ["));
}

TEST(DescribeCluster, TellsThePortsOfEachKindOfLeaf) {
  ClusterSpec spec = H100Dgx(4);
  spec.fabric.nodes_per_leaf_group = {4, "test"};
  spec.fabric.oversubscription = {4, "test"};
  NodeGroup slow = spec.node_groups.front();
  slow.name = "slow";
  slow.nic_bandwidth.value = 100_GBps;
  spec.node_groups.push_back(slow);
  // 4 NICs of 50 and of 100 GB/s over 4: one and two ports.
  EXPECT_THAT(DescribeCluster(Cluster(spec)),
              AllOf(HasSubstr("oversubscription   4 : 1 ["),
                    HasSubstr("  ports of a leaf    50.0 GB/s together in dgx\n"
                              "  ports of a leaf     100 GB/s together in slow\n")));
  spec.fabric.oversubscription = {3, "test"};  // 66.7 and 133 GB/s: two and three ports
  EXPECT_THAT(DescribeCluster(Cluster(spec)),
              HasSubstr("3 : 1 asked, 2 : 1 in dgx, 2.667 : 1 in slow with whole ports"));
}

TEST(DescribeCluster, TellsThePortsOfOneSpineSwitch) {
  ClusterSpec spec = H100Dgx(4);
  spec.fabric.nodes_per_leaf_group = {2, "test"};
  spec.fabric.num_spines = {2, "test"};
  spec.fabric.core = CoreTier{.leaf_groups_per_pod = {1, "test"},
                              .num_cores = {2, "test"},
                              .oversubscription = {3, "test"},
                              .port_bandwidth = {50_GBps, "test"},
                              .hop_latency = {base::Seconds(1e-6), "test"}};
  // A pod's 8 leaves have a port of 50 GB/s to each of 2 spines: 400 GB/s into one, 133 GB/s
  // upwards are 3 ports, as one device or with switches of their own.
  for (const std::optional<Ecmp> ecmp : {std::optional<Ecmp>(), std::optional(Ecmp{})}) {
    spec.fabric.ecmp = ecmp;
    EXPECT_THAT(DescribeCluster(Cluster(spec)),
                AllOf(HasSubstr("spine to core      3 : 1 asked, 2.667 : 1 with whole ports ["),
                      HasSubstr("ports of a spine    150 GB/s together\n")));
  }
}

TEST(DescribeCluster, TellsGpusInARowAsARange) {
  ClusterSpec spec = H100Dgx(3);
  for (int gpu = 0; gpu < 8; ++gpu) {
    spec.link_faults.push_back({FaultyPart::kNic, NodeId{1}, gpu, 0});
  }
  EXPECT_THAT(DescribeCluster(Cluster(spec)), HasSubstr("cut off are GPUs 8-15\n"));
}

TEST(DescribeCluster, TellsAHostsCores) {
  ClusterSpec spec = H100Dgx(1);
  spec.node_groups.front().gpus_per_node = 1;
  spec.node_groups.front().nics_per_node = 0;
  spec.ranks_share = RanksShare::kCores;
  EXPECT_THAT(DescribeCluster(Cluster(spec)),
              HasSubstr("one machine with as many cores as its profile was measured on, shared by "
                        "up to 256 ranks\n"));
  spec.cores = 1;
  EXPECT_THAT(DescribeCluster(Cluster(spec)), HasSubstr("one machine with 1 core, shared"));
}

TEST(DescribeRoute, KeepsLongNamesApart) {
  // "pcie-switch 131071.7" is longer than the columns are wide.
  const std::string text = DescribeRoute(Cluster(H100Dgx(1 << 17)), Rank{0}, Rank{(1 << 20) - 1});
  EXPECT_THAT(text, HasSubstr("pcie-switch 131071.7  64.0 GB/s"));
  EXPECT_THAT(text, HasSubstr("pcie-switch 131071.7 -> gpu 131071.7"));
}

TEST(DescribeRoute, NamesEveryLink) {
  EXPECT_EQ(DescribeRoute(Cluster(H100Dgx(2)), Rank{1}, Rank{9}),
            "rank 1 on gpu 0.1 to rank 9 on gpu 1.1: rail, 6 links\n"
            "  pcie    gpu 0.1            -> pcie-switch 0.1    64.0 GB/s    300 ns\n"
            "  pcie    pcie-switch 0.1    -> nic 0.1            64.0 GB/s    300 ns\n"
            "  nic     nic 0.1            -> leaf 0.1           50.0 GB/s    800 ns\n"
            "  nic     leaf 0.1           -> nic 1.1            50.0 GB/s    800 ns\n"
            "  pcie    nic 1.1            -> pcie-switch 1.1    64.0 GB/s    300 ns\n"
            "  pcie    pcie-switch 1.1    -> gpu 1.1            64.0 GB/s    300 ns\n"
            "bottleneck 50.0 GB/s, latency 2.80 us\n");
  EXPECT_EQ(DescribeRoute(Cluster(H100Dgx(1)), Rank{1}, Rank{1}),
            "rank 1 on gpu 0.1 to rank 1 on gpu 0.1: same device, no link is crossed\n");
  EXPECT_THROW(DescribeRoute(Cluster(H100Dgx(1)), Rank{1}, Rank{8}), base::Error);
}

TEST(Presets, AreFoundByName) {
  for (const std::string& name : PresetNames()) {
    const auto spec = FindPreset(name, 3);
    ASSERT_TRUE(spec.has_value());
    EXPECT_EQ(spec->name, name);
    EXPECT_EQ(Cluster(*spec).num_gpus(), 24);
  }
  EXPECT_EQ(FindPreset("b200", 1), std::nullopt);
}

}  // namespace
}  // namespace isthmus::topology
