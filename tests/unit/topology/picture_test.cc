#include "topology/picture.h"

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

}  // namespace
}  // namespace isthmus::topology
