#include "sim/simulate.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/network/flow_solver.h"
#include "tests/support/flows.h"
#include "tests/support/small_jobs.h"
#include "tests/unit/sim/cost_profiles.h"
#include "tests/unit/sim/host_profile.h"
#include "topology/presets.h"
#include "traces/recorder.h"

namespace isthmus::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// An LLM of two stages on 16 ranks with an encoder on the same ranks.
plan::Job Colocated() {
  return tests::SmallJob("colocated", plan::Placement::kColocated,
                         {tests::SmallEncoder("vision", {.tp = 2, .dp = 8}),
                          tests::SmallLlm({.tp = 4, .pp = 2, .dp = 2})});
}

class SimulateTest : public ::testing::Test {
 protected:
  Outcome Run(const plan::Job& job, const SimOptions& options, traces::TraceSink& sink) {
    return Simulate(plan::Build(job), topology::Cluster(topology::H100Dgx(2)), profile_, options,
                    {}, sink);
  }

  profiles::Profile profile_ = ShippedProfile("h100-sxm");
};

TEST_F(SimulateTest, GivesEqualTracesForEqualInputs) {
  traces::Recorder first;
  traces::Recorder second;
  Run(Colocated(), {}, first);
  Run(Colocated(), {}, second);
  EXPECT_TRUE(first.complete());
  EXPECT_EQ(first.trace(), second.trace());
}

TEST_F(SimulateTest, FoldedAndUnfoldedEndTogether) {
  traces::Recorder folded;
  traces::Recorder unfolded;
  const Outcome few = Run(Colocated(), {}, folded);
  const Outcome all = Run(Colocated(), {.folding = Folding::kOff}, unfolded);
  EXPECT_TRUE(few.folded);
  EXPECT_LT(few.simulated_ranks, 16);
  EXPECT_EQ(all.simulated_ranks, 16);
  EXPECT_EQ(few.end_ps, all.end_ps);
  // Every rank's peak is that of its class.
  for (const traces::RankClass& cls : folded.header().classes) {
    const auto index = static_cast<std::size_t>(&cls - folded.header().classes.data());
    for (const std::int32_t member : cls.members) {
      EXPECT_EQ(unfolded.trailer().memory[static_cast<std::size_t>(member)].device_bytes,
                folded.trailer().memory[index].device_bytes);
    }
  }
}

TEST_F(SimulateTest, MemoryCategoriesSumToTheDeviceOnEveryClass) {
  traces::Recorder recorder;
  Run(Colocated(), {}, recorder);
  ASSERT_EQ(recorder.trailer().memory.size(), recorder.header().classes.size());
  for (const traces::MemoryPeak& peak : recorder.trailer().memory) {
    const std::int64_t sum =
        std::accumulate(peak.categories.begin(), peak.categories.end(), std::int64_t{0},
                        [](std::int64_t bytes, const auto& entry) { return bytes + entry.second; });
    EXPECT_EQ(sum, peak.device_bytes);
    EXPECT_EQ(peak.verdict, "fits");
  }
}

TEST_F(SimulateTest, SaysWhoWaitsForWhomInADeadlock) {
  traces::Recorder recorder;
  const Outcome outcome = Run(tests::DeadlockingJoin(), {}, recorder);
  EXPECT_TRUE(outcome.deadlock);
  EXPECT_TRUE(recorder.complete());
  EXPECT_THAT(
      outcome.explanation,
      MatchesRegex("deadlock: rank [0-9]+ waits for ever for rank [0-9]+ to (send|receive).* in "
                   "op [0-9]+ \\(.+\\)"));
}

TEST_F(SimulateTest, RefusesAClusterThatIsTooSmall) {
  traces::Recorder recorder;
  try {
    Simulate(plan::Build(Colocated()), topology::Cluster(topology::H100Dgx(1)), profile_, {}, {},
             recorder);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the job needs 16 ranks"));
  }
}

// Where this was built without SimGrid.
std::optional<std::string> WhyNoFlows() {
  try {
    LoadFlowSolver();
  } catch (const base::IoError& error) {
    return error.what();
  }
  return std::nullopt;
}

TEST_F(SimulateTest, AFlowNetworkTellsWhatCrossedEachLink) {
  if (const auto reason = WhyNoFlows()) GTEST_SKIP() << *reason;
  traces::Recorder closed;
  traces::Recorder shared;
  const Outcome without = Run(Colocated(), {.folding = Folding::kOff}, closed);
  SimOptions options{.folding = Folding::kOff, .network = Network::kFlow};
  std::vector<double> crossed;
  std::uint64_t num_flows = 0;
  std::vector<LinkFlow> messages;
  options.on_flow = [&](const LinkFlow& flow) {
    ++num_flows;
    EXPECT_GE(flow.end_ps, flow.start_ps + flow.alone_ps - 1);
    for (const std::uint32_t link : flow.links) {
      if (link >= crossed.size()) crossed.resize(link + 1, 0);
      crossed[link] += flow.bytes;
    }
    if (flow.purpose == plan::Purpose::kPipeline) messages.push_back(flow);
  };
  const Outcome with = Run(Colocated(), options, shared);
  EXPECT_EQ(num_flows, with.num_flows);
  ASSERT_EQ(crossed.size(), with.links.size());
  // A message's flow ends when the op of its sender says so.
  ASSERT_FALSE(messages.empty());
  for (const LinkFlow& message : messages) {
    const traces::Event event{.rank_class = message.rank_class,
                              .op = message.op,
                              .inner = message.inner,
                              .end_ps = message.end_ps};
    const auto& events = shared.trace().events;
    EXPECT_TRUE(std::any_of(events.begin(), events.end(), [&](const traces::Event& other) {
      return other.rank_class == event.rank_class && other.op == event.op &&
             other.inner == event.inner && other.end_ps == event.end_ps;
    }));
  }
  EXPECT_TRUE(without.links.empty());
  EXPECT_EQ(with.num_ops, without.num_ops);
  EXPECT_GT(with.num_flows, 0U);
  double to_other_node = 0;
  for (const LinkTraffic& use : with.links) {
    const double bytes = std::accumulate(use.account.bytes.begin(), use.account.bytes.end(), 0.0);
    EXPECT_GT(use.account.busy_ps, 0);
    const auto link = static_cast<std::size_t>(&use - with.links.data());
    EXPECT_NEAR(bytes, crossed[link], 1e-9 * bytes);
    EXPECT_LE(bytes, use.link.bandwidth.value() * 1.001e-12 *
                         static_cast<double>(use.account.busy_ps + 1000));
    if (use.link.kind == topology::LinkKind::kNic)
      to_other_node += use.account.bytes[static_cast<std::size_t>(plan::Purpose::kPipeline)];
  }
  // Stage 0 is on node 0, stage 1 on node 1.
  EXPECT_GT(to_other_node, 0);
}

TEST_F(SimulateTest, RecordsLinksOverTimeIfAskedTo) {
  if (const auto reason = WhyNoFlows()) GTEST_SKIP() << *reason;
  traces::Recorder plain;
  traces::Recorder recorded;
  const Outcome without = Run(Colocated(), {.network = Network::kFlow}, plain);
  const Outcome with =
      Run(Colocated(), {.network = Network::kFlow, .record_links = true}, recorded);
  EXPECT_FALSE(without.link_history.has_value());
  EXPECT_EQ(with.end_ps, without.end_ps);
  EXPECT_EQ(with.simulated_ranks, 16);
  ASSERT_TRUE(with.link_history.has_value());
  const LinkHistory& history = *with.link_history;
  ASSERT_EQ(history.bytes.size(), with.links.size() * history.num_bins);
  EXPECT_LT(history.bin_ps * static_cast<std::int64_t>(history.num_bins - 1), with.end_ps);
  EXPECT_GE(history.bin_ps * static_cast<std::int64_t>(history.num_bins), with.end_ps);
  for (std::size_t link = 0; link < with.links.size(); ++link) {
    const auto& bytes = with.links[link].account.bytes;
    const auto bins = history.bytes_of(link);
    // Every flow's bytes were rounded once.
    EXPECT_NEAR(static_cast<double>(std::accumulate(bins.begin(), bins.end(), std::int64_t{0})),
                std::accumulate(bytes.begin(), bytes.end(), 0.0),
                0.5 * static_cast<double>(with.num_flows));
  }
}

TEST_F(SimulateTest, NamesTheTransferAndTheCutWhereDeadLinksLeaveNoWay) {
  // GPU 0's PCIe link is dead, and so are the NVLinks that would lead round it.
  topology::ClusterSpec spec = topology::H100Dgx(2);
  for (int gpu = 0; gpu < 8; ++gpu) {
    spec.link_faults.push_back(
        {.part = topology::FaultyPart::kPcie, .node = base::NodeId(0), .index = gpu});
  }
  for (const Network network : {Network::kNccl, Network::kFlow}) {
    traces::Recorder recorder;
    try {
      Simulate(plan::Build(Colocated()), topology::Cluster(spec), profile_, {.network = network},
               {}, recorder);
      FAIL();
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("dead links"));
      EXPECT_THAT(error.what(), MatchesRegex("(.|\n)*needed by: (messages from rank|collectives of "
                                             "ranks) [0-9]+ to (.|\n)*"));
    }
  }
}

TEST_F(SimulateTest, NamesTheCollectiveWhereTheFabricIsSplit) {
  // Every GPU has its NIC and every leaf an uplink, but those of node 0 end at spine 1, those of
  // node 1 at spine 0. Only gradients and parameters cross nodes: between ranks r and r + 8.
  topology::ClusterSpec spec = topology::H100Dgx(2);
  spec.fabric.nodes_per_leaf_group = {1, "test"};
  spec.fabric.num_spines = {2, "test"};
  spec.fabric.wiring = topology::LeafWiring::kShared;
  spec.fabric.ecmp.emplace();
  for (int node = 0; node < 2; ++node) {
    spec.link_faults.push_back(
        {.part = topology::FaultyPart::kUplink, .node = base::NodeId(node), .to = node});
  }
  const plan::Job job =
      tests::SmallJob("split", plan::Placement::kColocated, {tests::SmallLlm({.tp = 8, .dp = 2})});
  for (const Network network : {Network::kNccl, Network::kFlow}) {
    traces::Recorder recorder;
    try {
      Simulate(plan::Build(job), topology::Cluster(spec), profile_, {.network = network}, {},
               recorder);
      FAIL();
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("dead links cut GPU 0 off from GPU 8"));
      EXPECT_THAT(error.what(), HasSubstr("needed by: collectives of ranks 0 to 8 (2 of them)"));
    }
  }
}

TEST_F(SimulateTest, JitterIsOfEveryRankByItself) {
  topology::ClusterSpec spec = topology::H100Dgx(2);
  spec.jitter = topology::Jitter{.seed = 7, .compute = {.deviation = 0.03}};
  for (const Network network : {Network::kNccl, Network::kFlow}) {
    if (network == Network::kFlow && !tests::HasFlows()) continue;
    traces::Recorder first;
    traces::Recorder second;
    const auto run = [&](traces::TraceSink& sink) {
      return Simulate(plan::Build(Colocated()), topology::Cluster(spec), profile_,
                      {.network = network}, {}, sink);
    };
    const Outcome outcome = run(first);
    EXPECT_FALSE(outcome.folded);
    EXPECT_EQ(outcome.simulated_ranks, 16);
    run(second);
    EXPECT_EQ(first.trace(), second.trace());
  }
}

TEST(SimulateOnAHost, RefusesAFlowNetwork) {
  topology::ClusterSpec spec;
  spec.name = "cpu-host";
  spec.node_groups = {{.name = "host",
                       .gpus_per_node = 1,
                       .nics_per_node = 0,
                       .gpu = "host",
                       .source = "assumed: a test"}};
  spec.ranks_share = topology::RanksShare::kCores;
  traces::Recorder recorder;
  const plan::Job job =
      tests::SmallJob("host", plan::Placement::kHomogeneous, {tests::SmallLlm({.tp = 2})});
  try {
    Simulate(plan::Build(job), topology::Cluster(spec), HostProfile(), {.network = Network::kFlow},
             {}, recorder);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("share one device"));
  }
}

}  // namespace
}  // namespace isthmus::sim
