// Clusters written as files and read back.

#include <cstdint>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/random.h"
#include "scenarios/scenario.h"
#include "tests/support/random_cluster.h"
#include "tests/support/test_folder.h"

namespace isthmus::scenarios {
namespace {

TEST(ClusterFileProperty, ReadsBackAsTheSameSpec) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::RandomStream random(seed, "cluster_file");
    topology::ClusterSpec spec = tests::RandomCluster(random);
    if (random.Chance(0.2)) spec = tests::AsCustom(spec);
    tests::AddFaults(spec, random, 4, 0.5);
    if (random.Chance(0.3)) spec.slow_gpus = {{base::DeviceId{0}, 0.75}};
    if (random.Chance(0.3)) {
      spec.jitter = topology::Jitter{.seed = random.Next() >> 1U};
      spec.jitter->compute.deviation = random.UniformReal();
      spec.jitter->communication = {
          .distribution = topology::TimeVariation::Distribution::kExponential,
          .deviation = random.UniformReal(),
          .stall = {{random.UniformReal(), base::Seconds(random.UniformReal())}}};
    }
    if (random.Chance(0.3)) spec.rank_devices = {base::DeviceId{0}, base::DeviceId{0}};
    const std::filesystem::path path = tests::TestFolder() / "cluster.yaml";
    base::WriteFile(path, WriteCluster(spec));
    ASSERT_EQ(LoadCluster(path.string()), spec) << WriteCluster(spec);
  }
}

TEST(ClusterFileProperty, ShippedClustersReadBack) {
  for (const std::string& name : ShippedNames(FileKind::kCluster, DefaultSearchPaths())) {
    SCOPED_TRACE(name);
    const topology::ClusterSpec spec = LoadCluster(name);
    const std::filesystem::path path = tests::TestFolder() / (name + ".yaml");
    base::WriteFile(path, WriteCluster(spec));
    EXPECT_EQ(LoadCluster(path.string()), spec);
  }
}

}  // namespace
}  // namespace isthmus::scenarios
