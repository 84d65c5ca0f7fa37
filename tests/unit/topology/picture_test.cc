#include "topology/picture.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "base/unit_literals.h"
#include "topology/presets.h"

namespace isthmus::topology {
namespace {

using namespace base::literals;

// A layer's box is as wide as what is written in it: 11 px letters are 6 px wide at the least.
TEST(Picture, ALayersNameFitsIntoItsBox) {
  ClusterSpec spec = H100Dgx(1);
  spec.fabric.num_spines = {32, "test"};
  spec.fabric.core = CoreTier{.leaf_groups_per_pod = {1, "test"},
                              .num_cores = {64, "test"},
                              .oversubscription = {1, "test"},
                              .port_bandwidth = {50_GBps, "test"},
                              .hop_latency = {base::Seconds(1e-6), "test"}};
  const std::string picture = DrawCluster(Cluster(spec));
  const std::regex text("<text x=\"([0-9.]+)\"[^>]*>(spine of pod 0: 32 switches, evenly used)<");
  std::smatch name;
  ASSERT_TRUE(std::regex_search(picture, name, text)) << picture;
  const double middle = std::stod(name[1]);
  const double needed = 6.0 * static_cast<double>(name[2].length());
  bool fits = false;
  const std::regex box("<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\"");
  for (std::sregex_iterator at(picture.begin(), picture.end(), box), end; at != end; ++at) {
    const double left = std::stod((*at)[1]);
    const double width = std::stod((*at)[3]);
    fits = fits || (std::abs(left + width / 2 - middle) < 0.2 && width >= needed);
  }
  EXPECT_TRUE(fits);
}

// One node under eight switches in a row is narrower than they are.
TEST(Picture, IsAsWideAsWhatIsDrawn) {
  ClusterSpec spec = H100Dgx(1);
  CustomFabric custom;
  for (int index = 0; index < 8; ++index) {
    custom.switches.push_back("leaf-" + std::to_string(index));
    custom.cables.push_back(
        {.from = "nic 0." + std::to_string(index), .to = custom.switches.back()});
  }
  spec.fabric.custom = custom;
  const std::string picture = DrawCluster(Cluster(spec));
  std::smatch canvas;
  ASSERT_TRUE(std::regex_search(picture, canvas, std::regex("viewBox=\"0 0 ([0-9]+) ")));
  const std::regex box("<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\"");
  double right = 0;
  for (std::sregex_iterator at(picture.begin(), picture.end(), box), end; at != end; ++at) {
    right = std::max(right, std::stod((*at)[1]) + std::stod((*at)[3]));
  }
  EXPECT_GT(right, 760) << "the switches are drawn side by side";
  EXPECT_GE(std::stod(canvas[1]), right);
}

TEST(Picture, OfAHostNamesNoGpus) {
  ClusterSpec spec = H100Dgx(1);
  spec.node_groups.front().gpus_per_node = 1;
  spec.node_groups.front().nics_per_node = 0;
  spec.ranks_share = RanksShare::kCores;
  const std::string picture = DrawCluster(Cluster(spec));
  EXPECT_NE(picture.find("one machine"), std::string::npos);
  EXPECT_EQ(picture.find("GPU"), std::string::npos);
  EXPECT_EQ(picture.find("0.00 B/s"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::topology
