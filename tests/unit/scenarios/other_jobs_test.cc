// Jobs on nodes of their own: where their ranks are, and what they are made of.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

using ::testing::ElementsAre;

constexpr const char* kJob = R"(
cluster: h100-dgx
workload: {sequence_length: 2048, global_batch: 8}
modules:
  llm: {model: llama3-8b, layout: {tp: 4, dp: 2}}
)";
constexpr const char* kBeside =
    "other_jobs=[{scenario: examples/gpt-8gpu, nodes: 5}, {scenario: examples/gpt-8gpu, nodes: "
    "'2', start_after: 1 ms, set: [workload.global_batch=16]}]";

Scenario Load(const std::vector<std::string>& overrides) {
  return ParseScenario(kJob, "job.yaml", overrides);
}

std::vector<int> GpusOf(const Scenario& scenario) {
  std::vector<int> gpus;
  for (const base::DeviceId gpu : scenario.cluster.rank_devices) gpus.push_back(gpu.value());
  return gpus;
}

TEST(OtherJobs, RanksAreOnTheNodesInTheirOrder) {
  EXPECT_TRUE(Load({}).cluster.rank_devices.empty());
  EXPECT_THAT(GpusOf(Load({"on_nodes=3", "nodes=4"})), ElementsAre(24, 25, 26, 27, 28, 29, 30, 31));
  // As many nodes as are named, whatever else is given.
  const Scenario two = Load({"on_nodes='2, 0'", "modules.llm.layout.dp=4"});
  EXPECT_EQ(two.cluster.node_groups.front().num_nodes, 3);
  EXPECT_EQ(two.job.num_ranks, 16);
  EXPECT_THAT(GpusOf(two), ElementsAre(16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(OtherJobs, AreOnTheFirstJobsCluster) {
  const Scenario scenario = Load({kBeside});
  EXPECT_EQ(scenario.job.num_ranks, 8);
  EXPECT_TRUE(scenario.cluster.rank_devices.empty());
  // Of one node for itself, but others name the sixth.
  EXPECT_EQ(scenario.cluster.node_groups.front().num_nodes, 6);
  ASSERT_EQ(scenario.other_jobs.size(), 2U);
  const OtherJob& one = scenario.other_jobs[0];
  const OtherJob& two = scenario.other_jobs[1];
  EXPECT_EQ(one.name, "gpt-8gpu");
  EXPECT_EQ(two.name, "gpt-8gpu (2)");
  EXPECT_EQ(one.scenario.cluster.node_groups, scenario.cluster.node_groups);
  EXPECT_THAT(GpusOf(one.scenario), ElementsAre(40, 41, 42, 43, 44, 45, 46, 47));
  EXPECT_THAT(GpusOf(two.scenario), ElementsAre(16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_EQ(one.scenario.job.workload.global_batch, 64);
  EXPECT_EQ(two.scenario.job.workload.global_batch, 16);
  EXPECT_EQ(two.start_after, base::Seconds(1e-3));
}

TEST(OtherJobs, AreInTheFingerprint) {
  const Scenario alone = Load({"nodes=6", "num_gpus=8"});
  const Scenario beside = Load({"nodes=6", "num_gpus=8", kBeside});
  const Scenario other =
      Load({"nodes=6", "num_gpus=8", kBeside, "other_jobs.0.set=[workload.global_batch=32]"});
  EXPECT_NE(alone.hash, beside.hash);
  EXPECT_NE(beside.hash, other.hash);
  EXPECT_EQ(alone.hash, Load({"nodes=6", "num_gpus=8", "other_jobs=[]"}).hash);
  // What `scenario show` prints is the same scenario.
  const Scenario again = ParseScenario(beside.effective_yaml, "again.yaml");
  EXPECT_EQ(again.hash, beside.hash);
  const Scenario moved = Load({"on_nodes=3", "nodes=4"});
  EXPECT_EQ(ParseScenario(moved.effective_yaml, "again.yaml").hash, moved.hash);
}

}  // namespace
}  // namespace isthmus::scenarios
