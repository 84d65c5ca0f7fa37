// Fabrics as ibnetdiscover prints them.

#include "topology/ibnetdiscover.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/unit_literals.h"
#include "topology/cluster.h"
#include "topology/internal/natural_order.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using namespace base::literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two leaves under one spine with two cables each. gpu-9 and gpu-10 have two adapters each, one on
// each leaf; a storage node and the switch's own adapter hang there too. Adapters' sections, which
// say the same from the other side, stand before, between and behind.
constexpr const char* kTwoLeaves = R"(#
# Topology file: generated on Mon Nov 30 10:00:00 2026
#
vendid=0x2c9
devid=0xd2f2
sysimgguid=0xb0
switchguid=0xb0(b0)
Switch	65 "S-00000000000000b0"		# "MF0;leaf-a:MQM9700/U1" enhanced port 0 lid 1 lmc 0
[1]	"H-0000000000000010"[1](10) 		# "gpu-10 mlx5_0" lid 11 4xNDR
[2]	"H-0000000000000009"[1](9) 		# "gpu-9 mlx5_0" lid 12 4xNDR
[3]	"H-0000000000000077"[1](77) 		# "storage-1 mlx5_0" lid 13 4xHDR
[33]	"S-00000000000000a0"[1]		# "MF0;spine:MQM9700/U1" lid 3 4xNDR
[34]	"S-00000000000000a0"[2]		# "MF0;spine:MQM9700/U1" lid 3 4xNDR
[65]	"H-0000000000000088"[1](88) 		# "Mellanox Technologies Aggregation Node" lid 14 4xNDR

Ca	1 "H-0000000000000010"		# "gpu-10 mlx5_0"
[1](10) 	"S-00000000000000b0"[1]		# lid 11 lmc 0 "MF0;leaf-a:MQM9700/U1" lid 1 4xNDR

Switch	65 "S-00000000000000b1"		# "MF0;leaf-b:MQM9700/U1" enhanced port 0 lid 2 lmc 0
[1]	"H-0000000000000110"[1](110) 		# "gpu-10 mlx5_1" lid 21 4xNDR
[2]	"H-0000000000000109"[1](109) 		# "gpu-9 mlx5_1" lid 22 2xNDR
[33]	"S-00000000000000a0"[3]		# "MF0;spine:MQM9700/U1" lid 3 4xNDR
[34]	"S-00000000000000a0"[4]		# "MF0;spine:MQM9700/U1" lid 3 4xHDR

Switch	65 "S-00000000000000a0"		# "MF0;spine:MQM9700/U1" enhanced port 0 lid 3 lmc 0
[1]	"S-00000000000000b0"[33]		# "MF0;leaf-a:MQM9700/U1" lid 1 4xNDR
[2]	"S-00000000000000b0"[34]		# "MF0;leaf-a:MQM9700/U1" lid 1 4xNDR

Ca	1 "H-0000000000000009"		# "gpu-9 mlx5_0"
[1](9) 	"S-00000000000000b0"[2]		# lid 12 lmc 0 "MF0;leaf-a:MQM9700/U1" lid 1 4xNDR
Ca	1 "H-0000000000000109"		# "gpu-9 mlx5_1"
Ca	1 "H-0000000000000110"		# "gpu-10 mlx5_1"
Ca	1 "H-0000000000000077"		# "storage-1 mlx5_0"
Ca	1 "H-0000000000000088"		# "Mellanox Technologies Aggregation Node"
)";

DiscoveredFabric TwoLeaves(const std::string& nics = "gpu-*") {
  return ReadIbnetdiscover(kTwoLeaves, "fabric.txt", nics);
}

std::vector<std::string> Ends(const CustomFabric& fabric) {
  std::vector<std::string> ends;
  for (const CableSpec& cable : fabric.cables) {
    ends.push_back(fmt::format("{} x {} - {}, {:g} GB/s, {}", cable.count, cable.from, cable.to,
                               cable.bandwidth.value.value() / 1e9, cable.bandwidth.source));
  }
  return ends;
}

TEST(Ibnetdiscover, MakesHostsNodesAndAdaptersNics) {
  const DiscoveredFabric found = TwoLeaves();
  EXPECT_THAT(found.hosts, ElementsAre("gpu-9", "gpu-10"));  // not as texts
  EXPECT_THAT(found.nics, ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_THAT(found.fabric.switches, ElementsAre("leaf-a", "leaf-b", "spine"));
  EXPECT_THAT(found.lost_nics, IsEmpty());
  EXPECT_THAT(found.left_out,
              ElementsAre("Mellanox Technologies Aggregation Node", "storage-1 mlx5_0"));
  // 4xNDR is 4 · 100 Gbit/s = 50 GB/s. gpu-9's second NIC came up with two lanes. The cables of
  // leaf-b to the spine are 50 + 25 GB/s.
  EXPECT_THAT(Ends(found.fabric),
              ElementsAre("1 x nic 0-1.0 - leaf-a, 50 GB/s, fabric.txt: 4xNDR",
                          "1 x nic 0.1 - leaf-b, 25 GB/s, fabric.txt: 2xNDR",
                          "1 x nic 1.1 - leaf-b, 50 GB/s, fabric.txt: 4xNDR",
                          "2 x leaf-a - spine, 50 GB/s, fabric.txt: 4xNDR",
                          "1 x leaf-b - spine, 75 GB/s, fabric.txt: 4xNDR + 4xHDR"));
}

TEST(Ibnetdiscover, GivesAClusterWithRoutesOfItsOwn) {
  ClusterSpec nodes = H100Dgx(64);
  nodes.node_groups[0].nics_per_node = 8;
  const Cluster cluster(WithFabric(nodes, TwoLeaves(), "fabric.txt"));
  EXPECT_EQ(cluster.num_nodes(), 2);
  // GPUs 4 to 7 of a node have its second NIC: from node 0 at 25 GB/s, from GPU 0 at 50.
  EXPECT_EQ(cluster.RouteBetween(base::DeviceId{4}, base::DeviceId{12}).Bandwidth(), 25_GBps);
  EXPECT_EQ(cluster.RouteBetween(base::DeviceId{0}, base::DeviceId{8}).Bandwidth(), 50_GBps);
}

TEST(Ibnetdiscover, DoesNotCareForTheOrderOfSections) {
  // Section by section from the back.
  std::string text = kTwoLeaves;
  std::vector<std::string> sections;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t next = text.find("\n\n", begin);
    sections.push_back(text.substr(begin, next - begin));
    begin = next == std::string::npos ? text.size() : next + 2;
  }
  std::string turned;
  for (auto section = sections.rbegin(); section != sections.rend(); ++section) {
    turned += *section + "\n\n";
  }
  const DiscoveredFabric found = ReadIbnetdiscover(turned, "fabric.txt", "gpu-*");
  EXPECT_EQ(found.fabric, TwoLeaves().fabric);
  EXPECT_EQ(found.hosts, TwoLeaves().hosts);
}

TEST(Ibnetdiscover, KeepsALostNicAsADeadLink) {
  std::string text = kTwoLeaves;
  const std::string line =
      "[2]\t\"H-0000000000000109\"[1](109) \t\t# \"gpu-9 mlx5_1\" lid 22 2xNDR\n";
  ASSERT_NE(text.find(line), std::string::npos);
  text.erase(text.find(line), line.size());
  const DiscoveredFabric found = ReadIbnetdiscover(text, "fabric.txt", "gpu-*");
  ASSERT_EQ(found.lost_nics.size(), 1U);
  EXPECT_EQ(found.lost_nics[0].part, FaultyPart::kNic);
  EXPECT_EQ(found.lost_nics[0].node.value(), 0);
  EXPECT_EQ(found.lost_nics[0].index, 1);
  EXPECT_EQ(found.lost_nics[0].bandwidth_factor, 0);
  // GPU 4's way out is over NVLink to the node's live NIC.
  const Cluster cluster(WithFabric(H100Dgx(1), found, "fabric.txt"));
  const Route route = cluster.RouteBetween(base::DeviceId{4}, base::DeviceId{12});
  EXPECT_EQ(route.links.front().kind, LinkKind::kNvlink);
}

TEST(Ibnetdiscover, TellsSwitchesOfOneNameApart) {
  const std::string text = R"(Switch 2 "S-01" # "MF0;director:CS8500/L1"
[1] "H-11"[1] # "n1 mlx5_0" lid 1
[2] "S-02"[1] # "MF0;director:CS8500/S1" lid 2
Switch 2 "S-02" # "MF0;director:CS8500/S1"
[2] "S-03"[1] # "sw" lid 3
Switch 2 "S-03" # "sw"
[2] "S-04"[1] # "sw" lid 3
Switch 2 "S-04" # "sw"
Ca 1 "H-11" # "n1 mlx5_0"
)";
  const DiscoveredFabric found = ReadIbnetdiscover(text, "f");
  EXPECT_THAT(found.fabric.switches, ElementsAre("MF0;director:CS8500/L1", "MF0;director:CS8500/S1",
                                                 "sw S-03", "sw S-04"));
  EXPECT_TRUE(found.fabric.cables[0].bandwidth.source.empty()) << "nothing was printed";
}

TEST(Ibnetdiscover, TakesThePortsOfAnAdapterApart) {
  const std::string text = R"(Switch 2 "S-01" # "sw"
[1] "H-11"[1](b) # "n1 mlx5_0" lid 1 4xEDR
[2] "H-11"[2](c) # "n1 mlx5_0" lid 2 4xEDR
Ca 2 "H-11" # "n1 mlx5_0"
)";
  EXPECT_THAT(ReadIbnetdiscover(text, "f").nics, ElementsAre("mlx5_0 port 1", "mlx5_0 port 2"));
}

std::string MistakeOf(const std::string& text, const std::string& nics = {}) {
  try {
    ReadIbnetdiscover(text, "f.txt", nics);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Ibnetdiscover, SaysWhereItCannotRead) {
  EXPECT_THAT(MistakeOf(""), HasSubstr("f.txt: error: there is no switch in it"));
  const std::string mistakes = MistakeOf(
      "Switch 2 \"S-01\" # \"sw\"\n[1] H-11[1]\nhello\n[2] \"H-11\"[1] # \"n mlx5_0\" lid 1 "
      "4xABC\n");
  EXPECT_THAT(mistakes, HasSubstr("f.txt:2:1: error: can't read \"[1] H-11[1]\""));
  EXPECT_THAT(mistakes, HasSubstr("f.txt:3:1: error: can't read \"hello\""));
  EXPECT_THAT(mistakes, HasSubstr("f.txt:4:1: error: unknown speed \"ABC\""));
  EXPECT_THAT(MistakeOf("[1] \"H-11\"[1]\n"), HasSubstr("f.txt:1:1: error: a port of nothing"));
}

TEST(Ibnetdiscover, RefusesWhatIsNoText) {
  const std::string sound = "Switch 2 \"S-01\" # \"sw\"\n";
  // Once it ran out of stack.
  EXPECT_THAT(MistakeOf(sound + "# " + std::string(30000, 'x')),
              HasSubstr("f.txt:2:1: error: a line of 30002 bytes"));
  EXPECT_THAT(MistakeOf(sound + "# " + std::string(4094, 'x')),
              HasSubstr("none of its 0 channel adapters"));  // the longest that is read
  const std::string escaping = MistakeOf(sound + "[1] \x1b[31m\n");
  EXPECT_THAT(escaping, HasSubstr("f.txt:2:5: error: this is no text file: byte 0x1B"));
  EXPECT_EQ(escaping.find('\x1b'), std::string::npos);
  EXPECT_THAT(MistakeOf(sound + std::string(3, '\0')), HasSubstr("byte 0x00"));
  EXPECT_THAT(MistakeOf("\x7f"
                        "ELF\x02"),
              HasSubstr("f.txt:1:1: error: this is no text file"));
  EXPECT_THAT(MistakeOf(sound + "# \xC2\x9B"
                                "31m"),
              HasSubstr("byte 0xC2"));
  EXPECT_EQ(ReadIbnetdiscover("\xEF\xBB\xBF" + std::string(kTwoLeaves), "f.txt").fabric,
            ReadIbnetdiscover(kTwoLeaves, "f.txt").fabric);
}

TEST(Ibnetdiscover, RefusesAFileThatWasCutOff) {
  // The last sections are those of the six adapters; the last one is shorter than its port's line.
  const std::string whole = kTwoLeaves;
  const std::string without_storage = whole.substr(0, whole.find("Ca\t1 \"H-0000000000000077\""));
  EXPECT_THAT(MistakeOf(without_storage),
              HasSubstr("f.txt:11:1: error: cables lead to 2 nodes without a section of their own: "
                        "storage-1 mlx5_0 (line 11), Mellanox Technologies Aggregation Node (line "
                        "14)\n  hint: is the file cut off?"));
  // Inside the second leaf's section: gpu-9's and gpu-10's second adapters would be gone.
  EXPECT_THAT(MistakeOf(whole.substr(0, whole.find("[33]\t\"S-00000000000000a0\"[3]"))),
              HasSubstr("is the file cut off?"));
}

TEST(Ibnetdiscover, APortHasOneCable) {
  // Prints of two fabrics in one file, or of one before and after a cable was moved.
  const std::string text = R"(Switch 2 "S-01" # "a"
[1] "H-11"[1] # "n1 x" lid 1 4xNDR
[1] "S-02"[1] # "b" lid 1 4xNDR
Switch 2 "S-02" # "b"
[1] "S-01"[1] # "a" lid 1 4xNDR
Ca 1 "H-11" # "n1 x"
[1] "S-01"[1] # lid 1 lmc 0 "a" lid 1 4xNDR
)";
  EXPECT_EQ(MistakeOf(text),
            "f.txt:3:1: error: port 1 of \"S-01\" has another cable, on line 2\n"
            "  hint: give one print of one fabric");
}

TEST(Ibnetdiscover, RefusesWhatIsNoClusterOfEqualNodes) {
  EXPECT_THAT(MistakeOf(kTwoLeaves, "cpu-*"), HasSubstr("none of its 6 channel adapters is a NIC"));
  const std::string back_to_back = R"(Switch 2 "S-01" # "sw"
[1] "H-11"[1] # "n1 a" lid 1 4xEDR
Ca 1 "H-11" # "n1 a"
Ca 1 "H-12" # "n1 b"
[1] "H-13"[1] # lid 1 "n2 b" lid 1 4xEDR
Ca 1 "H-13" # "n2 b"
)";
  EXPECT_THAT(MistakeOf(back_to_back),
              HasSubstr("f.txt:5:1: error: \"n1 b\" is joined to no switch"));
  // storage-1 has one of two.
  EXPECT_EQ(MistakeOf(kTwoLeaves), "none");
  std::string wide = kTwoLeaves;
  wide += "Ca 1 \"H-31\" # \"gpu-9 mlx5_2\"\n[1] \"S-00000000000000b1\"[9] # lid 1 lmc 0 4xNDR\n";
  EXPECT_THAT(MistakeOf(wide), HasSubstr("host storage-1 has 1 of 3 NICs"));
  EXPECT_THAT(MistakeOf(std::string(kTwoLeaves) + kTwoLeaves), HasSubstr("comes again"));
  EXPECT_THROW(WithFabric(H100Dgx(1), ReadIbnetdiscover(wide, "f", "gpu-*"), "f"), base::Error)
      << "8 GPUs can't share 3 NICs";
  ClusterSpec one = H100Dgx(1);
  one.node_groups.front().gpus_per_node = 1;
  try {
    WithFabric(one, TwoLeaves(), "f");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("hosts have 2 NICs (mlx5_0 … mlx5_1), which the 1 GPU of a"));
  }
}

TEST(NaturalOrder, GoesByNumbers) {
  const internal::NaturalOrder less;
  const std::vector<std::string> ordered{"a", "a1", "a01b", "a2", "a10", "a010x", "ab", "b"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(less(ordered[i], ordered[j]), i < j) << ordered[i] << " " << ordered[j];
    }
  }
  EXPECT_TRUE(less("n01", "n1"));
  EXPECT_FALSE(less("n1", "n01"));
}

}  // namespace
}  // namespace isthmus::topology
