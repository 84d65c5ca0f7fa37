// Fabrics given cable by cable.

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
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using base::DeviceId;
using base::NodeId;
using base::Rank;
using namespace base::literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A switch for each rail and nothing above: 3 nodes of 8 GPUs, rails 0 to 7.
ClusterSpec RailOnly() {
  ClusterSpec spec = H100Dgx(3);
  CustomFabric custom;
  for (int rail = 0; rail < 8; ++rail) {
    const std::string name = "rail-" + std::to_string(rail);
    custom.switches.push_back(name);
    custom.cables.push_back({.from = "nic *." + std::to_string(rail), .to = name});
  }
  spec.fabric.custom = custom;
  return spec;
}

// Nodes 0 to 1 on switch a, node 2 on c; a and c are joined over b by one cable, over d by two.
ClusterSpec Diamond() {
  ClusterSpec spec = H100Dgx(3);
  spec.fabric.custom = CustomFabric{
      .switches = {"a", "b", "c", "d"},
      .cables = {{.from = "nic 0-1.*", .to = "a"},
                 {.from = "c", .to = "nic 2.*"},
                 {.from = "a", .to = "b"},
                 {.from = "b", .to = "c"},
                 {.from = "a", .to = "d", .count = 2, .bandwidth = {30_GBps, "test"}},
                 {.from = "d", .to = "c", .count = 2, .bandwidth = {30_GBps, "test"}}}};
  return spec;
}

std::vector<std::string> Switches(const Cluster& cluster, int from, int to) {
  std::vector<std::string> names;
  for (const Link& link : cluster.RouteBetween(DeviceId{from}, DeviceId{to}).links) {
    const Device device = cluster.DeviceAt(link.to);
    if (device.kind == DeviceKind::kSwitch) {
      names.push_back(
          cluster.spec().fabric.custom->switches[static_cast<std::size_t>(device.index)]);
    }
  }
  return names;
}

TEST(CustomFabric, OfRailsAloneTurnsOverNvlink) {
  const Cluster cluster(RailOnly());
  EXPECT_EQ(cluster.CountOf(DeviceKind::kSwitch), 8);
  EXPECT_EQ(cluster.CountOf(DeviceKind::kLeaf), 0);
  EXPECT_THAT(Switches(cluster, 1, 17), ElementsAre("rail-1"));
  const Route route = cluster.RouteBetween(DeviceId{1}, DeviceId{18});
  EXPECT_EQ(route.Kind(), PathKind::kCrossRail);
  EXPECT_EQ(route.Bandwidth(), 50_GBps);
  // As with leaves: 2 NVLinks, 4 PCIe, 2 NIC links.
  EXPECT_NEAR(route.Latency().value() * 1e6, 3.3, 1e-9);
}

TEST(CustomFabric, SharesEqualPathsOut) {
  const Cluster cluster(Diamond());
  std::set<std::vector<std::string>> paths;
  for (int gpu = 0; gpu < 16; ++gpu) paths.insert(Switches(cluster, gpu, 16));
  EXPECT_THAT(paths, ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("a", "d", "c")));
  EXPECT_EQ(Switches(cluster, 0, 16), Switches(Cluster(Diamond()), 0, 16));
  // The port's 50 GB/s over b, 2 x 30 GB/s over d, where the NIC's 50 GB/s bind.
  for (int gpu = 0; gpu < 16; ++gpu) {
    EXPECT_EQ(cluster.RouteBetween(DeviceId{gpu}, DeviceId{16}).Bandwidth(), 50_GBps);
  }
}

TEST(CustomFabric, GoesRoundDeadCablesAndSwitches) {
  ClusterSpec spec = Diamond();
  spec.link_faults = {{FaultyPart::kCable, NodeId{0}, 3, 0}};
  for (int gpu = 0; gpu < 16; ++gpu) {
    EXPECT_THAT(Switches(Cluster(spec), gpu, 16), ElementsAre("a", "d", "c"));
  }
  spec.link_faults = {{FaultyPart::kSwitch, NodeId{0}, 3, 0.5},
                      {FaultyPart::kNic, NodeId{0}, 1, 0}};
  const Cluster slow(spec);
  std::set<double> bandwidths;
  for (int gpu = 0; gpu < 16; ++gpu) {
    bandwidths.insert(slow.RouteBetween(DeviceId{gpu}, DeviceId{16}).Bandwidth()->value());
  }
  EXPECT_THAT(bandwidths, ElementsAre(30e9, 50e9));
  EXPECT_EQ(slow.RouteBetween(DeviceId{1}, DeviceId{16}).Kind(), PathKind::kSpine);
  spec.link_faults = {{FaultyPart::kSwitch, NodeId{0}, 1, 0},
                      {FaultyPart::kCable, NodeId{0}, 5, 0}};
  try {
    Cluster(spec).RouteBetween(DeviceId{0}, DeviceId{16});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("dead links cut GPU 0 off from GPU 16: a -> b, d -> c\n"));
  }
}

TEST(CustomFabric, TellsHowFarAGroupReaches) {
  const auto locality = [](const ClusterSpec& spec, const std::vector<int>& numbers) {
    std::vector<Rank> ranks;
    for (const int number : numbers) ranks.emplace_back(number);
    return Cluster(spec).Locality(ranks);
  };
  EXPECT_EQ(locality(Diamond(), {0, 9}).farthest, PathKind::kRail);
  EXPECT_EQ(locality(Diamond(), {0, 16}).farthest, PathKind::kSpine);
  EXPECT_EQ(locality(Diamond(), {0, 7}).farthest, PathKind::kNvlink);
  EXPECT_EQ(locality(RailOnly(), {0, 8}).farthest, PathKind::kRail);
  ClusterSpec spec = Diamond();
  spec.link_faults = {{FaultyPart::kNic, NodeId{1}, 0, 0.5}};
  EXPECT_EQ(locality(spec, {0, 8}).slowest_nic, 25_GBps);
  spec.link_faults = {{FaultyPart::kNic, NodeId{1}, 0, 0}};
  EXPECT_EQ(locality(spec, {0, 8}).slowest_nic, 50_GBps);  // of a neighbour's
}

TEST(CustomFabric, SaysWhichGpusNoCablesJoin) {
  ClusterSpec spec = Diamond();
  spec.fabric.custom->cables.erase(spec.fabric.custom->cables.begin() + 2,
                                   spec.fabric.custom->cables.end());
  try {
    Cluster(spec).RouteBetween(DeviceId{0}, DeviceId{16});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no cables lead from GPU 0 to GPU 16"));
  }
}

TEST(CustomFabricErrors, SayWhatWasFoundAndWhatToDo) {
  const auto cable = [](CustomFabric& custom, std::string from, std::string to) {
    custom.cables.push_back({.from = std::move(from), .to = std::move(to)});
  };
  const std::map<std::string, std::function<void(CustomFabric&)>> cases = {
      {"fabric.custom.switches: names 0 switches", [](CustomFabric& c) { c.switches.clear(); }},
      {"fabric.custom.switches.4: \"a\" is empty, a NIC, or used twice",
       [](CustomFabric& c) { c.switches.push_back("a"); }},
      {"fabric.custom.cables.6.to: there is no switch \"e\"",
       [&](CustomFabric& c) { cable(c, "a", "e"); }},
      {"fabric.custom.cables.6.from: \"nic 0\" is no NIC",
       [&](CustomFabric& c) { cable(c, "nic 0", "a"); }},
      {"fabric.custom.cables.6.from: \"nic 2-1.0\" is no NIC",
       [&](CustomFabric& c) { cable(c, "nic 2-1.0", "a"); }},
      {"fabric.custom.cables.6.from: there is no node 3",
       [&](CustomFabric& c) { cable(c, "nic 3.0", "a"); }},
      {"fabric.custom.cables.6.from: nodes of dgx have NICs 0 to 7",
       [&](CustomFabric& c) { cable(c, "nic 0.8", "a"); }},
      {"fabric.custom.cables.6: joins NICs to NICs",
       [&](CustomFabric& c) { cable(c, "nic 0.0", "nic 1.0"); }},
      {"fabric.custom.cables.6: joins nic 1.3 to this switch again",
       [&](CustomFabric& c) { cable(c, "nic 1.3", "a"); }},
      {"fabric.custom.cables.6: joins a switch to itself, or to another one again",
       [&](CustomFabric& c) { cable(c, "b", "a"); }},
      {"fabric.custom.cables.2.count: found 0", [](CustomFabric& c) { c.cables[2].count = 0; }},
      {"fabric.custom.cables.2.bandwidth: 0 B/s is not a bandwidth",
       [](CustomFabric& c) {
         c.cables[2].bandwidth = {0_GBps, "test"};
       }},
      {"fabric.custom.cables: nic 2.0 has no cable",
       [](CustomFabric& c) { c.cables.erase(c.cables.begin() + 1); }},
  };
  for (const auto& [text, spoil] : cases) {
    ClusterSpec spec = Diamond();
    spoil(*spec.fabric.custom);
    ExpectMistake(spec, text);
  }
}

}  // namespace
}  // namespace isthmus::topology
