// Clusters outside of scenarios: what files that build on others make of them, and what they
// refuse.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ClusterFile : public ::testing::Test {
 protected:
  ClusterFile() { std::filesystem::create_directories(folder_); }
  ~ClusterFile() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::string ErrorOf(const std::string& text) const {
    try {
      LoadCluster(Write("bad.yaml", text));
    } catch (const base::ScenarioError& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("isthmus_cluster_file_" + std::to_string(getpid()));
};

constexpr const char* kCustom =
    "extends: h100-dgx\n"
    "fabric:\n"
    "  custom:\n"
    "    switches: [sw]\n"
    "    cables: [{from: nic *.*, to: sw}]\n";

TEST_F(ClusterFile, ThatChangesAnotherIsNotCalledLikeIt) {
  EXPECT_EQ(LoadCluster(Write("same.yaml", "extends: h100-dgx\n")).name, "h100-dgx");
  const std::string changed =
      Write("changed.yaml", "extends: h100-dgx\nnode_groups: {dgx: {num_nodes: 2}}\n");
  EXPECT_EQ(LoadCluster(changed).name, "h100-dgx (changed)");
  // Once is enough.
  EXPECT_EQ(LoadCluster(Write("again.yaml", "extends: changed.yaml\nslow_gpus: []\n")).name,
            "h100-dgx (changed)");
  EXPECT_EQ(LoadCluster(Write("named.yaml", "extends: changed.yaml\nname: mine\n")).name, "mine");
}

TEST_F(ClusterFile, HasLayersOrCablesButNotBoth) {
  EXPECT_THAT(ErrorOf(std::string(kCustom) + "  num_spines: 4\n  wiring: shared\n"),
              AllOf(HasSubstr("bad.yaml:6:15: error: cluster.fabric.num_spines: is given beside a "
                              "custom fabric, which has no layers"),
                    HasSubstr("bad.yaml:7:11: error: cluster.fabric.wiring: is given beside")));
  // h100-dgx has layers, which go with the fabric.
  const topology::ClusterSpec cluster = LoadCluster(Write("custom.yaml", kCustom));
  EXPECT_EQ(cluster.fabric.oversubscription, topology::Sourced<double>{});
  EXPECT_EQ(LoadCluster(Write("copy.yaml", WriteCluster(cluster))), cluster);
}

// A leaf of 32 NICs of 50 GB/s at 100 : 1 wants 16 GB/s, and gets a port of 50.
TEST_F(ClusterFile, OfWholePortsIsAnAssumptionOfRuns) {
  const std::string gpt = "scenarios/examples/gpt-8gpu.yaml";
  EXPECT_THAT(LoadScenario(gpt, {"cluster.fabric.oversubscription=100"}).assumptions,
              Contains(HasSubstr("oversubscription from leaf to spine 100 : 1 asked, 32 : 1 with "
                                 "whole ports")));
  // 1600 / 3.05 GB/s are 10.5 ports, so 11, which makes 2.909 : 1: 4.6 % less.
  EXPECT_THAT(LoadScenario(gpt, {"cluster.fabric.oversubscription=3.05"}).assumptions,
              Not(Contains(HasSubstr("with whole ports"))));
}

TEST_F(ClusterFile, IsToldWhatItLacks) {
  const std::string mistakes = ErrorOf("extends: h100-dgx\nfabric:\n  core: {num_cores: 4}\n");
  EXPECT_THAT(mistakes, AllOf(HasSubstr("cluster.fabric.core.leaf_groups_per_pod: is missing"),
                              HasSubstr("cluster.fabric.core.oversubscription: is missing"),
                              HasSubstr("cluster.fabric.core.port_bandwidth: is missing"),
                              HasSubstr("cluster.fabric.core.hop_latency: is missing")));
  EXPECT_THAT(mistakes, AllOf(Not(HasSubstr("found 0")), Not(HasSubstr("has no source"))));
}

}  // namespace
}  // namespace isthmus::scenarios
