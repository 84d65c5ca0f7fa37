#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/reports/run_builder.h"

namespace isthmus::reports {
namespace {

using traces::Category;

// Two stages, two microbatches, forward and backward 10 ps, every message 1 ps:
//   stage 0: F0 0-10, F1 10-20,                     B0 32-42,            B1 52-62
//   stage 1:          F0 11-21, B0 21-31, F1 31-41, B1 41-51
//   messages: F0 10-11, F1 20-21, B0 31-32, B1 51-52
RunBuilder OneForwardOneBackward() {
  RunBuilder run;
  const auto first = run.AddClass("llm.0", 1, {}, {1});
  const auto second = run.AddClass("llm.1", 1, {}, {0});

  const auto f0 = run.Compute(first, 0, 10);
  run.Transfer(first, true, 0, 10, 10, 11, {{f0}});
  const auto f1 = run.Compute(first, 10, 20);
  run.Transfer(first, true, 0, 20, 20, 21, {{f1}});
  const auto g0 = run.Transfer(first, false, 0, 20, 31, 32);
  const auto b0 = run.Compute(first, 32, 42, {{g0, 1}, {f0}});
  const auto g1 = run.Transfer(first, false, 0, 42, 51, 52, {{b0}});
  run.Compute(first, 52, 62, {{g1, 1}, {f1}});

  const auto a0 = run.Transfer(second, false, 0, 0, 10, 11);
  const auto s1f0 = run.Compute(second, 11, 21, {{a0, 1}});
  const auto a1 = run.Transfer(second, false, 0, 11, 20, 21);
  const auto s1b0 = run.Compute(second, 21, 31, {{s1f0}});
  run.Transfer(second, true, 0, 31, 31, 32, {{s1b0}});
  const auto s1f1 = run.Compute(second, 31, 41, {{a1, 1}});
  const auto s1b1 = run.Compute(second, 41, 51, {{s1f1}});
  run.Transfer(second, true, 0, 51, 51, 52, {{s1b1}});
  return run;
}

TEST(TimeSharesTest, PipelineGapsAreBubbleUntilTheProducerEndsThenMessage) {
  const Figures figures = OneForwardOneBackward().Analyse();
  EXPECT_EQ(figures.window_ps, 62);
  // Stage 0 waits 20-32 and 42-52, the last picosecond of each for the message.
  EXPECT_EQ(Use(figures, 0, TimeUse::kCompute), 40);
  EXPECT_EQ(Use(figures, 0, TimeUse::kBubble), 11 + 9);
  EXPECT_EQ(Use(figures, 0, TimeUse::kExposedComm), 2);
  // Stage 1 waits 0-11 for its first message, sends its last 51-52 and has nothing to do until 62.
  EXPECT_EQ(Use(figures, 1, TimeUse::kCompute), 40);
  EXPECT_EQ(Use(figures, 1, TimeUse::kBubble), 10 + 10);
  EXPECT_EQ(Use(figures, 1, TimeUse::kExposedComm), 2);
  EXPECT_EQ(Exposed(figures, 1, Category::kPipelineComm), 2);
  // 40/62 of each rank.
  EXPECT_DOUBLE_EQ(figures.shares[0], 40.0 / 62.0);
  EXPECT_EQ(std::accumulate(figures.shares.begin(), figures.shares.end(), 0.0), 1.0);
}

TEST(TimeSharesTest, CriticalPathOfThePipelineIsItsZigzag) {
  const Figures figures = OneForwardOneBackward().Analyse();
  // F0 on 0, message, F0 B0 F1 B1 on 1, message, B1 on 0: 6 computes and 2 messages.
  EXPECT_EQ(figures.critical_path_ps, 62);
  ASSERT_EQ(figures.critical_path.size(), 2U);
  EXPECT_EQ(figures.critical_path[0].category, "compute");
  EXPECT_EQ(figures.critical_path[0].module, "llm");
  EXPECT_DOUBLE_EQ(figures.critical_path[0].share, 60.0 / 62.0);
  EXPECT_EQ(figures.critical_path[1].category, "pipeline_comm");
  EXPECT_DOUBLE_EQ(figures.critical_path[1].share, 2.0 / 62.0);
}

TEST(TimeSharesTest, WhatASynchronisationBesideTakesIsNoTimeOfItsInnerCollectives) {
  RunBuilder run;
  const auto rank = run.AddClass("a");
  // 5 ps of kernels and 5 of its collective, 2 longer for what is synchronised beside it.
  const auto op = run.Compute(rank, 0, 12);
  run.header.roles[0].ops[op].inner_shares = {{Category::kCompute, 5}, {Category::kTpComm, 5}};
  run.trailer.slowdowns = {{.rank_class = rank, .op = op, .duration_ps = 2}};
  const Figures figures = run.Analyse(Analysis::Path::kWhole);
  EXPECT_EQ(Use(figures, rank, TimeUse::kCompute), 7);
  EXPECT_EQ(Exposed(figures, rank, Category::kTpComm), 5);
  ASSERT_EQ(figures.path.size(), 3U);
  EXPECT_EQ(figures.path[2].kind, "slowdown");
  EXPECT_EQ(figures.path[2].category, "compute");
  EXPECT_EQ(figures.path[2].start_ps, 10);
  EXPECT_EQ(figures.path[2].end_ps, 12);
  EXPECT_EQ(figures.path[1].kind, "compute");
}

TEST(TimeSharesTest, QueueingAfterBothSidesAreThereIsCommunication) {
  RunBuilder run;
  const auto from = run.AddClass("a", 1, {}, {1});
  const auto to = run.AddClass("b", 1, {}, {0});
  const auto made = run.Compute(from, 0, 10);
  // Both sides are there at 10; something in the network holds the message back until 14.
  run.Transfer(from, true, 0, 10, 14, 20, {{made}});
  const auto taken = run.Transfer(to, false, 0, 0, 14, 20);
  run.Compute(to, 20, 30, {{taken, 1}});
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, to, TimeUse::kBubble), 10);
  EXPECT_EQ(Use(figures, to, TimeUse::kExposedComm), 10);
  EXPECT_EQ(Use(figures, to, TimeUse::kCompute), 10);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "pipeline_comm"), 10.0 / 30.0);
}

TEST(TimeSharesTest, CollectiveWaitIsStragglerUntilTheLastMemberThenExposed) {
  RunBuilder run;
  run.header.groups = {{0, 1}};
  const auto fast = run.AddClass("fast", 1, {0});
  const auto slow = run.AddClass("slow", 1, {0});
  for (const auto& [rank_class, end] : {std::pair{fast, 10}, std::pair{slow, 16}}) {
    const auto backward = run.Compute(rank_class, 0, end);
    const auto reduced = run.Collective(rank_class, 1, end, 16, 21, {{backward}});
    run.Compute(rank_class, 21, 25, {{reduced}});
  }
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, fast, TimeUse::kStraggler), 6);
  EXPECT_EQ(Use(figures, fast, TimeUse::kExposedComm), 5);
  EXPECT_EQ(Use(figures, slow, TimeUse::kStraggler), 0);
  EXPECT_EQ(Exposed(figures, slow, Category::kDpComm), 5);
  // The path runs over the slow rank: 16 + 4 of compute, 5 of gradients.
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "compute"), 20.0 / 25.0);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "dp_comm"), 5.0 / 25.0);
  EXPECT_EQ(figures.longest_segments[0].rank, 1);
}

// The last stage is done with its backward at 10, the first at 16; the norm of all takes 16-18. The
// early stage waits for the pipeline to drain, for no straggler.
TEST(TimeSharesTest, WaitForOtherStagesAtANormIsBubble) {
  RunBuilder run;
  run.header.groups = {{0, 1}};
  const auto last = run.AddClass("last", 1, {0});
  const auto first = run.AddClass("first", 1, {0});
  for (const auto& [rank_class, end] : {std::pair{last, 10}, std::pair{first, 16}}) {
    const auto backward = run.Compute(rank_class, 0, end);
    const auto norm = run.Add(rank_class,
                              {.name = "norm",
                               .category = Category::kScalarComm,
                               .kind = "collective",
                               .lane = 1,
                               .group = 1,
                               .dependencies = {{backward}}},
                              end, 16, 18);
    run.Compute(rank_class, 18, 20, {{norm}});
  }
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, last, TimeUse::kBubble), 6);
  EXPECT_EQ(Use(figures, last, TimeUse::kStraggler), 0);
  EXPECT_EQ(Exposed(figures, last, Category::kScalarComm), 2);
  EXPECT_EQ(Use(figures, first, TimeUse::kBubble), 0);
}

TEST(TimeSharesTest, HiddenCommunicationCostsNothing) {
  RunBuilder run;
  run.header.groups = {{0}};
  const auto rank = run.AddClass("a", 4, {0});
  const auto first = run.Compute(rank, 0, 10);
  // Runs 10-18 beside the second compute 10-20, which needs nothing from it.
  const auto hidden = run.Collective(rank, 1, 10, 10, 18, {{first}});
  const auto second = run.Compute(rank, 10, 20, {{first}});
  // Its successor on the lane runs 20-26: 20-26 is exposed before the optimizer.
  const auto late = run.Collective(rank, 1, 20, 20, 26, {{second}});
  run.Compute(rank, 26, 30, {{hidden}, {late}});
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, rank, TimeUse::kCompute), 24);
  EXPECT_EQ(Use(figures, rank, TimeUse::kExposedComm), 6);
}

TEST(TimeSharesTest, MatchedComputeWaitsAsStragglerAndSplitsByItsInnerShares) {
  RunBuilder run;
  run.header.groups = {{0, 1}};
  const auto fast = run.AddClass("fast", 1, {0});
  const auto slow = run.AddClass("slow", 1, {0});
  for (const auto& [rank_class, ready] : {std::pair{fast, 4}, std::pair{slow, 7}}) {
    const auto before = run.Compute(rank_class, 0, ready);
    run.Add(rank_class,
            {.name = "backward",
             .kind = "compute",
             .module = 1,
             .group = 1,
             .dependencies = {{before}},
             .inner_shares = {{Category::kCompute, 6},
                              {Category::kTpComm, 2},
                              {Category::kCompute, 1},
                              {Category::kCpComm, 1}}},
            ready, 7, 17);
  }
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, fast, TimeUse::kStraggler), 3);
  EXPECT_EQ(Use(figures, fast, TimeUse::kCompute), 4 + 7);
  EXPECT_EQ(Exposed(figures, fast, Category::kTpComm), 2);
  EXPECT_EQ(Exposed(figures, fast, Category::kCpComm), 1);
  EXPECT_EQ(Use(figures, slow, TimeUse::kCompute), 7 + 7);
  // The path: 7 before on the slow rank, then 7 + 2 + 1.
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "compute"), 14.0 / 17.0);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "tp_comm"), 2.0 / 17.0);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "cp_comm"), 1.0 / 17.0);
}

TEST(TimeSharesTest, InnerSharesScaleToAMeasuredLength) {
  RunBuilder run;
  const auto rank = run.AddClass("a");
  // Shares of 30 : 10 on an op that took 100: 75 compute, 25 exposed.
  run.Add(rank,
          {.name = "forward",
           .kind = "compute",
           .module = 1,
           .inner_shares = {{Category::kCompute, 30}, {Category::kTpComm, 10}}},
          0, 0, 100);
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, rank, TimeUse::kCompute), 75);
  EXPECT_EQ(Exposed(figures, rank, Category::kTpComm), 25);
}

TEST(TimeSharesTest, WaitForACopyIsCopyAndItsCauseGoesOnBefore) {
  RunBuilder run;
  run.header.groups = {{0}};
  const auto rank = run.AddClass("a", 1, {0});
  const auto first = run.Compute(rank, 0, 10);
  const auto gathered = run.Collective(rank, 1, 10, 10, 13, {{first}});
  const auto copied = run.Add(rank,
                              {.name = "to_device",
                               .category = Category::kCopy,
                               .kind = "copy",
                               .module = 0,
                               .lane = RunBuilder::kCopyLane,
                               .dependencies = {{gathered}}},
                              13, 13, 20);
  run.Compute(rank, 20, 24, {{copied}});
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, rank, TimeUse::kCopy), 7);
  EXPECT_EQ(Use(figures, rank, TimeUse::kExposedComm), 3);
  EXPECT_EQ(Use(figures, rank, TimeUse::kCompute), 14);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "copy"), 7.0 / 24.0);
}

TEST(TimeSharesTest, ImposedWaitsAreWhatTheySay) {
  RunBuilder run;
  const auto rank = run.AddClass("a");
  const auto first = run.Compute(rank, 0, 10);
  run.Compute(rank, 13, 20, {{first}});
  run.trailer.waits = {{rank, first, 10, 13, true}, {rank, 1, 20, 22, false}};
  run.trailer.end_ps = 22;
  const Figures figures = run.Analyse();
  EXPECT_EQ(figures.window_ps, 22);
  EXPECT_EQ(Use(figures, rank, TimeUse::kStraggler), 3);
  EXPECT_EQ(Use(figures, rank, TimeUse::kHost), 2);
  EXPECT_EQ(Use(figures, rank, TimeUse::kBubble), 0);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "straggler"), 3.0 / 22.0);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "host"), 2.0 / 22.0);
}

TEST(TimeSharesTest, SkippedReceiveIsReadyWhenItsOpIsPosted) {
  RunBuilder run;
  const auto rank = run.AddClass("a", 1, {}, {0});
  const auto first = run.Compute(rank, 0, 10);
  // Posted at 10; nothing was transferred, so no event of the transfer.
  const auto skipped = run.Transfer(rank, false, 0, 10, 10, 10, {{first}});
  run.events.pop_back();
  run.Compute(rank, 10, 20, {{skipped, 1}});
  const Figures figures = run.Analyse();
  EXPECT_EQ(Use(figures, rank, TimeUse::kCompute), 20);
  EXPECT_DOUBLE_EQ(PathShareOf(figures, "compute"), 1.0);
}

TEST(TimeSharesTest, MeanWeighsClassesByTheirRanks) {
  RunBuilder run;
  const auto busy = run.AddClass("busy", 3);
  const auto idle = run.AddClass("idle", 1);
  run.Compute(busy, 0, 10);
  run.Compute(idle, 0, 2);
  const Figures figures = run.Analyse();
  // (3 · 10 + 1 · 2) / (4 · 10).
  EXPECT_DOUBLE_EQ(figures.shares[static_cast<std::size_t>(TimeUse::kCompute)], 0.8);
  EXPECT_DOUBLE_EQ(figures.shares[static_cast<std::size_t>(TimeUse::kBubble)], 0.2);
  ASSERT_EQ(figures.roles.size(), 2U);
  EXPECT_EQ(figures.roles[0].ranks, 3);
  EXPECT_DOUBLE_EQ(figures.roles[1].shares[static_cast<std::size_t>(TimeUse::kBubble)], 0.8);
}

TEST(TimeSharesTest, FanOutOfAFoldedLeaderMeetsItsReceiver) {
  RunBuilder run;
  // One leader sends each of two messages to two equal receivers, recorded once.
  const auto leader = run.AddClass("leader", 1, {}, {1, 1});
  const auto receiver = run.AddClass("receiver", 2, {}, {0});
  std::int64_t time = 0;
  for (int message = 0; message < 2; ++message) {
    const auto made = run.Compute(leader, time, time + 10);
    const auto sent = run.Add(leader,
                              {.name = "send",
                               .category = Category::kBoundaryComm,
                               .kind = "p2p",
                               .lane = RunBuilder::kP2PLane,
                               .dependencies = {{made}},
                               .transfers = {{true, 0, 1}, {true, 1, 1}}},
                              time + 10, time + 10, time + 10);
    run.events.push_back({leader, sent, 1, time + 10, time + 10, time + 12});
    run.events.push_back({leader, sent, 2, time + 10, time + 10, time + 12});
    const auto got = run.Transfer(receiver, false, 0, time, time + 10, time + 12);
    run.Compute(receiver, time + 12, time + 22, {{got, 1}});
    time += 22;
  }
  const Figures figures = run.Analyse();
  // Each of the receiver's waits is 10 of bubble and 2 of message; the second wait of the path
  // finds the leader's second compute only if message 2 meets the third of four transfers.
  EXPECT_EQ(Use(figures, receiver, TimeUse::kBubble), 20);
  EXPECT_EQ(Use(figures, receiver, TimeUse::kExposedComm), 4);
  EXPECT_NEAR(PathShareOf(figures, "boundary_comm") + PathShareOf(figures, "pipeline_comm"),
              2.0 / 44.0, 1e-15);
}

}  // namespace
}  // namespace isthmus::reports
