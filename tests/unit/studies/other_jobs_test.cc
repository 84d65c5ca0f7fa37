// A neighbour on the same fabric: what it costs, by hand.

#include <cstdint>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_io.h"
#include "studies/what_if.h"
#include "tests/support/flows.h"
#include "tests/support/test_folder.h"

namespace isthmus::studies {
namespace {

using ::testing::HasSubstr;

constexpr double kPicosecondsPerSecond = 1e12;
constexpr double kNic = 50e9;
// An activation between stages: 4096 tokens of 4096 values in BF16.
constexpr double kMessage = 4096.0 * 4096 * 2;

/// Two stages on nodes of one GPU, one microbatch: an activation there and a gradient back.
std::filesystem::path TwoStages() {
  const auto path = tests::TestFolder() / "scenario.yaml";
  base::WriteFile(path, R"(
name: two-stages
cluster:
  extends: h100-dgx
  node_groups: {dgx: {gpus_per_node: 1, nics_per_node: 1}}
  fabric: {nodes_per_leaf_group: 2, oversubscription: 2}
nodes: 8
num_gpus: 2
workload: {sequence_length: 4096, global_batch: 1}
modules:
  llm:
    model: {kind: decoder, name: small, source: made up, num_layers: 4, hidden: 4096,
            ffn_hidden: 16384, num_heads: 32, vocab_size: 32000}
    layout: {pp: 2, dp: 1}
)");
  return path;
}

reports::StepDifference Ask(const std::string& on_nodes, const std::string& nodes,
                            sim::Network network = sim::Network::kFlow) {
  const auto path = TwoStages();
  return WhatIf({.scenario = path,
                 .overrides = {"on_nodes='" + on_nodes + "'"},
                 .changes = {fmt::format("other_jobs=[{{scenario: {}, nodes: '{}', name: twin}}]",
                                         path.string(), nodes)},
                 .network = network,
                 .commit = "test"});
}

TEST(OtherJobs, ATwinOnTheSameUplinksTakesEveryMessagesTimeAgain) {
  if (!tests::HasFlows()) GTEST_SKIP() << "SimGrid is not installed";
  // Nodes 0 and 1 hang on one leaf, whose two NICs have one NIC's bandwidth to the spines; so do
  // 2 and 3. Both jobs do the same at the same times: each message gets half, both ways.
  const reports::StepDifference difference = Ask("0, 2", "1, 3");
  EXPECT_NEAR(static_cast<double>(difference.difference_ps()),
              2 * kMessage / kNic * kPicosecondsPerSecond, 10);
  ASSERT_EQ(difference.num_named, 1U);
  const reports::DifferenceTerm& term = difference.terms.front();
  EXPECT_EQ(term.op, "pipeline exchange");
  EXPECT_EQ(term.difference_ps(), difference.difference_ps());
  EXPECT_EQ(term.link_kind, "nic -> uplink");
  std::int64_t sum = 0;
  for (const reports::DifferenceTerm& each : difference.terms) sum += each.difference_ps();
  EXPECT_EQ(sum, difference.difference_ps());

  const reports::LinkFigures& links = *difference.changed.links;
  ASSERT_FALSE(links.losses.empty());
  for (const reports::LinkLossFigure& loss : links.losses) {
    EXPECT_NE(loss.victim.job, loss.culprit.job);
    EXPECT_EQ(loss.kind, "uplink");
    EXPECT_EQ(loss.victim.job + loss.culprit.job, "twin");
  }
  ASSERT_EQ(difference.changed.other_jobs.size(), 1U);
  EXPECT_EQ(difference.changed.other_jobs[0].name, "twin");
  EXPECT_NEAR(difference.changed.other_jobs[0].alone_step_time_s, difference.base.step_time_s,
              1e-11);
  EXPECT_TRUE(difference.base.other_jobs.empty());
}

TEST(OtherJobs, OnLinksOfTheirOwnTheyCostNothing) {
  if (!tests::HasFlows()) GTEST_SKIP() << "SimGrid is not installed";
  // Leaf groups {0, 1}, {2, 3} and {4, 5}, {6, 7}: to the picosecond.
  const reports::StepDifference difference = Ask("0, 2", "4, 6");
  EXPECT_EQ(difference.difference_ps(), 0);
  EXPECT_EQ(difference.num_named, 0U);
  EXPECT_TRUE(difference.changed.links->losses.empty());
}

TEST(OtherJobs, ClosedFormsCantSeeThem) {
  try {
    Ask("0, 2", "1, 3", sim::Network::kNccl);
    FAIL() << "nobody complained";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--network flow"));
  }
}

}  // namespace
}  // namespace isthmus::studies
