#include "scenarios/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "topology/presets.h"

namespace isthmus::scenarios {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One Llama-3 8B on one node, tp 4 and dp 2.
constexpr const char* kGpt = "scenarios/examples/gpt-8gpu.yaml";

std::string ErrorOf(const std::string& text) {
  try {
    ParseScenario(text, "test.yaml");
  } catch (const base::ScenarioError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ScenarioTest, AFileBecomesAJobOnACluster) {
  const Scenario scenario = LoadScenario(kGpt);
  EXPECT_EQ(scenario.name, "gpt-8gpu");
  EXPECT_EQ(scenario.job.num_ranks, 8);
  ASSERT_EQ(scenario.job.modules.size(), 1U);
  const plan::Module& llm = scenario.job.modules[0];
  EXPECT_EQ(llm.name, "llm");
  EXPECT_EQ(llm.transformer.hidden, 4096);
  EXPECT_EQ(llm.transformer.num_kv_heads, 8);
  EXPECT_EQ(llm.transformer.head_dim, 128);  // 4096 / 32
  EXPECT_TRUE(llm.transformer.gated_mlp);
  EXPECT_FALSE(llm.projector.has_value());
  ASSERT_TRUE(llm.layout.has_value());
  EXPECT_EQ(llm.layout->tp, 4);
  EXPECT_EQ(llm.layout->dp, 2);
  EXPECT_EQ(scenario.cluster, topology::H100Dgx(1));
  EXPECT_EQ(scenario.profile.name(), "h100-sxm");
}

TEST(ScenarioTest, OverridesReplaceValuesAndReachIntoPresets) {
  const Scenario scenario =
      LoadScenario(kGpt, {"modules.llm.layout.tp=8", "modules.llm.layout.dp=~",
                          "modules.llm.model.num_layers=16",
                          "cluster.node_groups.dgx.nic_bandwidth=200 Gbit/s"});
  EXPECT_EQ(scenario.job.modules[0].layout->tp, 8);
  EXPECT_EQ(scenario.job.modules[0].layout->dp, 1);  // derived: 8 GPUs / tp 8
  EXPECT_EQ(scenario.job.modules[0].transformer.num_layers, 16);
  EXPECT_EQ(scenario.cluster.node_groups[0].nic_bandwidth.value, base::BytesPerSecond(25e9));
  EXPECT_THAT(ShowScenario(scenario), HasSubstr("# --set modules.llm.layout.tp"));
  EXPECT_THAT(ShowScenario(scenario), HasSubstr("name: llama3-8b (changed)"));
}

TEST(ScenarioTest, TheHashIsOfValuesAndNotOfTheirSpelling) {
  const std::uint64_t hash = LoadScenario(kGpt).hash;
  EXPECT_EQ(LoadScenario(kGpt, {"description=another", "nodes=1"}).hash, hash);
  EXPECT_EQ(LoadScenario(kGpt, {"cluster.node_groups.dgx.nic_bandwidth=50 GB/s"}).hash, hash);
  EXPECT_NE(LoadScenario(kGpt, {"workload.global_batch=128"}).hash, hash);
  EXPECT_NE(LoadScenario(kGpt, {"cluster.node_groups.dgx.nic_bandwidth=49 GB/s"}).hash, hash);
}

TEST(ScenarioTest, WhatIsShownLoadsAsTheSameScenario) {
  const Scenario scenario = LoadScenario(kGpt);
  const Scenario again = ParseScenario(ShowScenario(scenario), "shown.yaml");
  EXPECT_EQ(again.hash, scenario.hash);
  EXPECT_EQ(again.cluster, scenario.cluster);
}

TEST(ScenarioTest, AllMistakesComeAtOnceInTheOrderOfTheirPlaces) {
  const std::string text = ErrorOf(
      "cluster: h100-dgx\n"
      "nodez: 1\n"
      "workload: {sequence_length: 8192, global_batch: 64}\n"
      "modules:\n"
      "  llm:\n"
      "    model: llama3-8b\n"
      "    layout: {tp: 6, dp: 4}\n"
      "    recompute: ful\n");
  EXPECT_EQ(text.substr(0, text.find('\n')), "test.yaml:2:1: error: nodez: unknown key");
  EXPECT_THAT(text, HasSubstr("test.yaml:7:18: error: modules.llm.layout.tp: 6 does not divide "
                              "num_heads 32\n  hint: use 1, 2, 4, 8, 16 or 32"));
  EXPECT_THAT(text,
              HasSubstr("test.yaml:8:16: error: modules.llm.recompute: unknown value \"ful\"\n"
                        "  hint: did you mean full?"));
  EXPECT_LT(text.find("test.yaml:7"), text.find("test.yaml:8"));
}

TEST(ScenarioTest, ShippedClustersAreThePresets) {
  for (const std::string& name : topology::PresetNames()) {
    EXPECT_EQ(LoadCluster(name, 3), *topology::FindPreset(name, 3)) << name;
  }
  EXPECT_THAT(ShippedNames(FileKind::kCluster, DefaultSearchPaths()),
              ElementsAre("a100-dgx", "h100-dgx", "h200-dgx"));
}

}  // namespace
}  // namespace isthmus::scenarios
