#include "studies/what_if.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/random.h"
#include "plan/program/program.h"
#include "scenarios/scenario.h"
#include "tests/support/flows.h"
#include "tests/support/test_folder.h"
#include "topology/cluster.h"
#include "traces/recorder.h"

namespace isthmus::studies {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kPicosecondsPerSecond = 1e12;
// profiles/software.yaml: a message between nodes takes 15 us + bytes / (0.92 · NIC).
constexpr double kNicEfficiency = 0.92;
constexpr double kNic = 50e9;
// An activation between stages: 4096 tokens of 4096 values in BF16.
constexpr double kMessage = 4096.0 * 4096 * 2;

// 4 layers of 4096 over H100 nodes that have as many GPUs as `gpus_per_node`, and as many NICs.
reports::StepDifference Ask(const std::string& layout, int gpus_per_node, int nodes,
                            const std::vector<std::string>& changes,
                            sim::Network network = sim::Network::kNccl, int batch = 2) {
  const std::string text = fmt::format(R"(
cluster:
  extends: h100-dgx
  node_groups: {{dgx: {{gpus_per_node: {0}, nics_per_node: {0}}}}}
nodes: {1}
workload: {{sequence_length: 4096, global_batch: {2}}}
modules:
  llm:
    model: {{kind: decoder, name: small, source: made up, num_layers: 4, hidden: 4096,
            ffn_hidden: 16384, num_heads: 32, vocab_size: 32000}}
    layout: {{{3}}}
)",
                                       gpus_per_node, nodes, batch, layout);
  const auto path = tests::TestFolder() / "scenario.yaml";
  base::WriteFile(path, text);
  return WhatIf({.scenario = path,
                 .overrides = {},
                 .changes = changes,
                 .network = network,
                 .commit = "test"});
}

std::int64_t SumOf(const reports::StepDifference& difference, const std::string& category) {
  std::int64_t sum = 0;
  for (const reports::DifferenceTerm& term : difference.terms) {
    if (term.category == category) sum += term.difference_ps();
  }
  return sum;
}

const reports::DifferenceTerm& Find(const reports::StepDifference& difference,
                                    const std::string& op, const std::string& category) {
  for (const reports::DifferenceTerm& term : difference.terms) {
    if (term.op == op && term.category == category) return term;
  }
  ADD_FAILURE() << "no term " << op << ", " << category;
  return difference.terms.front();
}

TEST(WhatIfTest, AGpuAtHalfSpeedTakesTwiceTheTimeToCompute) {
  const auto difference = Ask("tp: 1", 1, 1, {"cluster.slow_gpus=[{gpu: 0, speed_factor: 0.5}]"});
  EXPECT_TRUE(difference.same_program);
  for (const reports::DifferenceTerm& term : difference.terms) {
    if (term.category != "compute" || term.kind == "wait") continue;
    // Every kernel of an op is rounded to picoseconds, in both steps.
    EXPECT_NEAR(static_cast<double>(term.changed_ps) / static_cast<double>(term.base_ps), 2, 1e-8)
        << term.op;
  }
  EXPECT_GT(SumOf(difference, "compute"), 0);
  EXPECT_EQ(difference.terms.front().op, "backward llm");
}

TEST(WhatIfTest, HalfTheNicAddsTheBytesOnceMoreToEachMessage) {
  // Two stages on nodes of one GPU, one copy, one microbatch: its activation and its gradient are
  // the two messages on the path. Each takes S / (0.92 · 25 GB/s) instead of S / (0.92 · 50 GB/s).
  const auto difference =
      Ask("pp: 2", 1, 2, {"cluster.nic.bandwidth=0.5x"}, sim::Network::kNccl, 1);
  const reports::DifferenceTerm& messages = Find(difference, "pipeline exchange", "pipeline_comm");
  EXPECT_EQ(messages.base_pieces, 2);
  EXPECT_EQ(messages.changed_pieces, 2);
  const double longer = 2 * kMessage / (kNicEfficiency * kNic) * kPicosecondsPerSecond;
  EXPECT_NEAR(static_cast<double>(messages.difference_ps()), longer, 4);
  EXPECT_EQ(messages.link_kind, "nic");
  // Everything else that crosses nodes are three sums of a double.
  EXPECT_EQ(SumOf(difference, "compute"), 0);
  EXPECT_NEAR(static_cast<double>(difference.difference_ps()), longer, 0.05 * longer);
}

TEST(WhatIfTest, ADegradedNicIsTheLinkThatTheDifferenceIsOn) {
  const auto difference =
      Ask("pp: 2", 1, 2,
          {"cluster.link_faults=[{part: nic, node: 1, index: 0, bandwidth_factor: 0.25}]"},
          sim::Network::kNccl, 1);
  const reports::DifferenceTerm& messages = Find(difference, "pipeline exchange", "pipeline_comm");
  // A quarter: four times S / (0.92 · 50 GB/s), three more for each of the two messages.
  const double longer = 2 * 3 * kMessage / (kNicEfficiency * kNic) * kPicosecondsPerSecond;
  EXPECT_NEAR(static_cast<double>(messages.difference_ps()), longer, 4);
  EXPECT_THAT(messages.link, HasSubstr("nic 1.0"));
}

TEST(WhatIfTest, TrafficOfADeadNicSharesThatOfTheNeighbour) {
  if (!tests::HasFlows()) GTEST_SKIP() << "SimGrid is not installed";
  // Two stages on two nodes, two copies. Both copies' messages leave node 0 at once, each over its
  // own NIC; with NIC 0 dead both over NIC 1, so that both take S / 50 GB/s longer: once for the
  // activation and, into node 0, once for the gradient.
  const std::vector<std::string> dead = {
      "cluster.link_faults=[{part: nic, node: 0, index: 0, bandwidth_factor: 0}]"};
  const auto shared = Ask("pp: 2, dp: 2", 2, 2, dead, sim::Network::kFlow);
  const double longer = 2 * kMessage / kNic * kPicosecondsPerSecond;
  const reports::DifferenceTerm& messages = Find(shared, "pipeline exchange", "pipeline_comm");
  EXPECT_EQ(messages.changed_pieces, 2);
  EXPECT_NEAR(static_cast<double>(messages.difference_ps()), longer, 1e-4 * longer);
  // Closed forms know of no sharing.
  const auto alone = Ask("pp: 2, dp: 2", 2, 2, dead, sim::Network::kNccl);
  EXPECT_NEAR(
      static_cast<double>(Find(alone, "pipeline exchange", "pipeline_comm").difference_ps()), 0, 4);
}

TEST(WhatIfTest, TheLinkIsTheOneOnWhichTimeWasLost) {
  if (!tests::HasFlows()) GTEST_SKIP() << "SimGrid is not installed";
  // As above, but what both copies share is one uplink port of 50 GB/s for the 8 NICs of a node.
  const auto difference = Ask("pp: 2, dp: 2", 2, 2,
                              {"cluster.fabric.nodes_per_leaf_group=1",
                               "cluster.fabric.wiring=shared", "cluster.fabric.oversubscription=8"},
                              sim::Network::kFlow);
  const double longer = 2 * kMessage / kNic * kPicosecondsPerSecond;
  const reports::DifferenceTerm& messages = Find(difference, "pipeline exchange", "pipeline_comm");
  EXPECT_NEAR(static_cast<double>(messages.difference_ps()), longer, 1e-2 * longer);
  EXPECT_EQ(messages.link_kind, "nic -> uplink");
}

TEST(WhatIfTest, AChangeThatDecidesNothingHasNoTerms) {
  // Nothing leaves the node.
  const auto difference = Ask("tp: 2", 2, 1, {"cluster.nic.bandwidth=2x"});
  EXPECT_EQ(difference.difference_ps(), 0);
  EXPECT_EQ(difference.num_named, 0U);
}

TEST(WhatIfTest, NotesTellWhatClosedFormsDontSee) {
  const auto notes = [](const std::string& change, sim::Network network) {
    return Ask("pp: 2", 1, 2, {change}, network).notes;
  };
  const std::string spines = "cluster.fabric.oversubscription=4";
  EXPECT_THAT(notes(spines, sim::Network::kNccl), ElementsAre(HasSubstr("--network flow")));
  EXPECT_THAT(notes("cluster.pcie.latency=2x", sim::Network::kNccl),
              ElementsAre(HasSubstr("--network flow")));
  EXPECT_THAT(notes("cluster.nic.bandwidth=2x", sim::Network::kNccl),
              ElementsAre(HasSubstr("uplinks are built for the NICs")));
  EXPECT_THAT(notes("cluster.slow_gpus=[{gpu: 0, speed_factor: 0.5}]", sim::Network::kNccl),
              ElementsAre());
  if (!tests::HasFlows()) return;
  EXPECT_THAT(notes(spines, sim::Network::kFlow), ElementsAre());
}

TEST(WhatIfTest, AnotherProgramIsComparedByNamesOfOps) {
  const auto difference = Ask("tp: 2", 2, 1, {"workload.global_batch=2x"});
  EXPECT_FALSE(difference.same_program);
  EXPECT_EQ(difference.notes.size(), 1U);
  // Twice the microbatches on one stage: what lies in them doubles.
  for (const char* op : {"forward llm", "backward llm"}) {
    const reports::DifferenceTerm& compute = Find(difference, op, "compute");
    EXPECT_NEAR(static_cast<double>(compute.changed_ps) / static_cast<double>(compute.base_ps), 2,
                0.05);
  }
  EXPECT_EQ(difference.changes.front().before, "2");
  EXPECT_EQ(difference.changes.front().after, "4");
}

// The quickstart with 16 samples: 8 for each of the LLM's two copies, and 2 for each of the four
// encoder ranks of a copy. What the vision encoder computes on the critical path.
std::int64_t VisionCompute(const std::string& images_per_sample,
                           const std::string& sample_order = "as_drawn") {
  const reports::StepDifference difference =
      WhatIf({.scenario = "scenarios/quickstart.yaml",
              .overrides = {"workload.global_batch=16", "workload.sample_order=" + sample_order},
              .changes = {"modules.vision.images_per_sample=" + images_per_sample},
              .commit = "test"});
  std::int64_t sum = 0;
  for (const reports::DifferenceTerm& term : difference.terms) {
    if (term.module == "vision" && term.category == "compute") sum += term.changed_ps;
  }
  return sum;
}

TEST(WhatIfTest, UnevenSamplesCostWhatTheFullestCopyHasUnlessReordered) {
  // All images in the second copy: its encoder ranks have 4 each, as if every sample had 2.
  const std::string counts = "[0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2]";
  const std::int64_t uneven = VisionCompute(counts);
  EXPECT_EQ(uneven, VisionCompute("2"));
  // One sample with and one without on every encoder rank: 2 images, as if every sample had 1.
  const std::int64_t reordered = VisionCompute("[0, 2]");
  EXPECT_EQ(reordered, VisionCompute("1"));
  EXPECT_GT(uneven, reordered);
  EXPECT_EQ(VisionCompute(counts, "balanced"), reordered);
}

// docs/models/jitter.md: what a lognormal factor makes of `alone_ps`.
std::int64_t Varied(std::int64_t alone_ps, double deviation, int rank, std::uint32_t op) {
  base::RandomStream random(base::HashBuilder(7).Add(rank).Add(0).Add(op).Add(0).digest(),
                            "jitter.compute");
  random.UniformReal();  // would there be a stall?
  const double sigma = std::sqrt(std::log(1 + deviation * deviation));
  return std::llround(std::exp(sigma * random.Normal(0, 1) - sigma * sigma / 2) *
                      static_cast<double>(alone_ps));
}

TEST(WhatIfTest, JitterOfComputeIsTheDifferenceOfItsFactors) {
  // One rank: every op is on the path, and nothing else varies.
  const std::string jitter = "cluster.jitter={seed: 7, compute: {deviation: 0.1}}";
  const auto difference = Ask("tp: 1", 1, 1, {jitter});
  EXPECT_TRUE(difference.same_program);
  std::int64_t longer = 0;
  std::int64_t other = difference.Other().difference_ps();
  for (const reports::DifferenceTerm& term : difference.terms) longer += term.difference_ps();
  EXPECT_EQ(longer, difference.difference_ps());
  EXPECT_LE(std::abs(static_cast<double>(other)), 0.05 * std::abs(static_cast<double>(longer)));

  const auto scenario = scenarios::LoadScenario(tests::TestFolder() / "scenario.yaml");
  traces::Recorder steady;
  sim::Simulate(plan::Build(scenario.job), topology::Cluster(scenario.cluster), scenario.profile,
                {}, {}, steady);
  std::int64_t expected = 0;
  for (const traces::Event& event : steady.trace().events) {
    const traces::OpRecord& op = steady.trace().header.roles[0].ops[event.op];
    if (op.kind != "compute" && op.kind != "optimizer") continue;
    const std::int64_t alone = event.end_ps - event.start_ps;
    expected += Varied(alone, 0.1, 0, event.op) - alone;
  }
  // Ops that wait for their issue start later the shorter they are; here none does.
  EXPECT_EQ(difference.difference_ps(), expected);
}

TEST(WhatIfTest, MistakesAreAtTheOption) {
  try {
    Ask("tp: 2", 2, 1, {"workload.globl_batch=2x", "cluster.nic.bandwidth=2y"});
    FAIL() << "no error";
  } catch (const base::ScenarioError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--change workload.globl_batch: error: unknown key"));
    EXPECT_THAT(error.what(), HasSubstr("--change cluster.node_groups.dgx.nic_bandwidth: error: "));
  }
  EXPECT_THROW(Ask("tp: 2", 2, 1, {}), base::Error);
  EXPECT_THROW(Ask("tp: 2", 2, 1, {"nodes"}), base::ScenarioError);
}

}  // namespace
}  // namespace isthmus::studies
