#include "plan/boundary/boundary.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::plan {
namespace {

using base::Rank;
using Lists = std::vector<std::vector<int>>;

std::vector<int> Values(const std::vector<Rank>& ranks) {
  std::vector<int> values;
  for (const Rank rank : ranks) {
    values.push_back(rank.value());
  }
  return values;
}

Lists Values(const std::vector<std::vector<Rank>>& groups) {
  Lists values;
  for (const std::vector<Rank>& group : groups) {
    values.push_back(Values(group));
  }
  return values;
}

/// The members of all communicators used in one direction, each once, by first member.
Lists GroupsUsed(const Boundary& boundary, bool forward, CollectiveKind collective) {
  std::set<std::vector<int>> used;
  for (const RankBoundary& rank : boundary.ranks) {
    for (const BoundaryStep& step : forward ? rank.forward : rank.backward) {
      if (step.kind == BoundaryStep::Kind::kCollective && step.collective == collective) {
        used.insert(Values(rank.groups[step.group]));
      }
    }
  }
  return {used.begin(), used.end()};
}

/// The steps of a rank as text: "all-gather 12, select 6".
std::string Text(const std::vector<BoundaryStep>& steps) {
  std::string text;
  for (const BoundaryStep& step : steps) {
    text += text.empty() ? "" : ", ";
    switch (step.kind) {
      case BoundaryStep::Kind::kSelect:
        text += "select";
        break;
      case BoundaryStep::Kind::kTransfers:
        text += "transfers";
        break;
      case BoundaryStep::Kind::kCollective:
        switch (step.collective) {
          case CollectiveKind::kAllGather:
            text += "all-gather";
            break;
          case CollectiveKind::kAllReduce:
            text += "all-reduce";
            break;
          case CollectiveKind::kAllToAllV:
            text += "all-to-all-v";
            break;
          case CollectiveKind::kBroadcast:
            text += "broadcast";
            break;
          case CollectiveKind::kReduce:
            text += "reduce";
            break;
          default:
            text += "?";
        }
    }
    text += fmt::format(" {}", step.tokens);
  }
  return text;
}

/// `num_samples` samples of four one-token images for each LLM shard, in one microbatch.
BoundaryTokens Samples(std::int64_t num_samples) {
  return {.tokens_per_sample = 4,
          .span_tokens = 1,
          .samples_per_microbatch = num_samples,
          .num_microbatches = 1,
          .width = 8};
}

Grid MegatronGrid(int tp, int cp, int pp, int dp, int first_rank = 0) {
  return Grid({.tp = tp,
               .cp = cp,
               .pp = pp,
               .dp = dp,
               .order = AxisOrder::kTpCpPpDp,
               .first_rank = first_rank},
              1);
}

// Oracles of Megatron-LM's bridge tests (reference §6.2), grids [tp, cp, pp, dp].
TEST(BoundaryLeadersTest, AreMegatrons) {
  EXPECT_EQ(Values(SourceLeaders(MegatronGrid(2, 1, 2, 2))), (std::vector<int>{3, 7}));
  EXPECT_EQ(Values(DestinationLeaders(MegatronGrid(2, 1, 2, 2))), (std::vector<int>{0, 4}));
  EXPECT_EQ(Values(SourceLeaders(MegatronGrid(4, 1, 2, 1))), (std::vector<int>{7}));
  EXPECT_EQ(Values(DestinationLeaders(MegatronGrid(4, 1, 2, 1))), (std::vector<int>{0}));
  EXPECT_EQ(Values(SourceLeaders(MegatronGrid(1, 1, 2, 4))), (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(Values(DestinationLeaders(MegatronGrid(1, 1, 2, 4))), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(Values(SourceLeaders(MegatronGrid(2, 1, 4, 1))), (std::vector<int>{7}));
  EXPECT_EQ(Values(DestinationLeaders(MegatronGrid(2, 1, 4, 1))), (std::vector<int>{0}));
}

TEST(BoundaryLeadersTest, BoundaryRanksAreMegatrons) {
  EXPECT_EQ(Values(SourceBoundaryRanks(MegatronGrid(2, 1, 2, 2))), (Lists{{2, 3}, {6, 7}}));
  EXPECT_EQ(Values(DestinationBoundaryRanks(MegatronGrid(2, 1, 2, 2))), (Lists{{0, 1}, {4, 5}}));
}

// Paper §3.3: encoder TP2 DP4 → LLM TP4 DP2. A shard has 2 samples, 8 tokens; a lane 4 of them.
TEST(ColocatedBoundaryTest, FanInGathersForwardAndSelectsBackward) {
  const Boundary boundary = BuildColocatedBoundary(Grid({.tp = 2, .dp = 4}, 1),
                                                   Grid({.tp = 4, .dp = 2}, 1), Samples(2), 8);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kFanIn);
  EXPECT_EQ(boundary.factor, 2);
  EXPECT_EQ(boundary.tokens_forward, 16);
  EXPECT_EQ(GroupsUsed(boundary, true, CollectiveKind::kAllGather),
            (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  for (const RankBoundary& rank : boundary.ranks) {
    EXPECT_EQ(Text(rank.forward), "all-gather 8");
    EXPECT_EQ(Text(rank.backward), "select 4");
  }
  EXPECT_EQ(boundary.ranks[2].held_forward, (Interval{4, 8}));
  EXPECT_EQ(boundary.ranks[2].needed_forward, (Interval{0, 8}));
  EXPECT_EQ(boundary.ranks[2].forward[0].member_tokens, (std::vector<std::int64_t>{4, 4}));
}

// Paper §3.3: encoder TP4 DP2 → LLM TP2 DP4. A shard has 4 tokens, a lane 8.
TEST(ColocatedBoundaryTest, FanOutSelectsForwardAndGathersBackward) {
  const Boundary boundary = BuildColocatedBoundary(Grid({.tp = 4, .dp = 2}, 1),
                                                   Grid({.tp = 2, .dp = 4}, 1), Samples(1), 8);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kFanOut);
  EXPECT_EQ(boundary.factor, 2);
  EXPECT_EQ(GroupsUsed(boundary, false, CollectiveKind::kAllGather),
            (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  for (const RankBoundary& rank : boundary.ranks) {
    EXPECT_EQ(Text(rank.forward), "select 4");
    EXPECT_EQ(Text(rank.backward), "all-gather 8");
  }
  EXPECT_EQ(boundary.ranks[6].needed_forward, (Interval{12, 16}));
  EXPECT_EQ(boundary.ranks[6].needed_backward, (Interval{8, 16}));
}

TEST(ColocatedBoundaryTest, EqualPassesThrough) {
  const Grid grid({.tp = 4, .dp = 2}, 1);
  const Boundary boundary = BuildColocatedBoundary(grid, grid, Samples(1), 8);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kEqual);
  for (const RankBoundary& rank : boundary.ranks) {
    EXPECT_TRUE(rank.forward.empty() && rank.backward.empty() && rank.groups.empty());
  }
}

// Paper Fig. 1: encoder TP2 DP2, LLM TP4 DP1 on four ranks.
TEST(ColocatedBoundaryTest, FigureOneGathersOverTheLanesOfTheShard) {
  const Boundary boundary =
      BuildColocatedBoundary(Grid({.tp = 2, .dp = 2}, 1), Grid({.tp = 4}, 1), Samples(1), 4);
  EXPECT_EQ(GroupsUsed(boundary, true, CollectiveKind::kAllGather), (Lists{{0, 2}, {1, 3}}));
}

// LLM TP2 PP2 DP2, stages {0..3} and {4..7}: shard 0 is {0,1,4,5}, so its lanes of encoder TP2 DP4
// are lanes 0 and 2, and lane 2 holds the tokens after lane 0's. Both stages gather, stage 0 hands
// the gradient to stage 1, each rank keeps its lane.
TEST(ColocatedBoundaryTest, LanesFollowTheShardThatOwnsTheirRanks) {
  const Boundary boundary = BuildColocatedBoundary(
      Grid({.tp = 2, .dp = 4}, 1), Grid({.tp = 2, .pp = 2, .dp = 2}, 1), Samples(2), 8);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kFanIn);
  EXPECT_EQ(GroupsUsed(boundary, true, CollectiveKind::kAllGather),
            (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(GroupsUsed(boundary, false, CollectiveKind::kBroadcast),
            (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(boundary.ranks[4].held_forward, (Interval{4, 8}));
  EXPECT_EQ(boundary.ranks[2].held_forward, (Interval{8, 12}));
  EXPECT_TRUE(boundary.ranks[4].needed_forward.empty());
  EXPECT_EQ(Text(boundary.ranks[4].backward), "broadcast 8, select 4");
}

// LLM CP2: the two cp ranks of a shard have gradients of their own tokens only.
TEST(ColocatedBoundaryTest, GradientsOfContextParallelRanksAreSummedFirst) {
  const Boundary boundary = BuildColocatedBoundary(
      Grid({.dp = 8}, 1), Grid({.tp = 2, .cp = 2, .dp = 2}, 1), Samples(1), 8);
  EXPECT_EQ(GroupsUsed(boundary, false, CollectiveKind::kAllReduce),
            (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(Text(boundary.ranks[7].backward), "all-reduce 4, select 1");
}

// Encoder TP4 DP2 on an LLM TP2 PP2 DP2 with consecutive stages: lane 1 = {4..7} has half of each
// shard. Its tokens are shard 1's, needed on {2, 3}: two pairs exchange 8 tokens one way, so the
// uniform all-to-all of two that moves as much holds 8·2/1 = 16.
TEST(ColocatedBoundaryTest, TornLanesExchangeWithinConnectedRanks) {
  const Boundary boundary = BuildColocatedBoundary(
      Grid({.tp = 4, .dp = 2}, 1), Grid({.tp = 2, .pp = 2, .dp = 2}, 1), Samples(2), 8);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kIrregular);
  EXPECT_EQ(GroupsUsed(boundary, true, CollectiveKind::kAllToAllV), (Lists{{2, 4}, {3, 5}}));
  EXPECT_EQ(Text(boundary.ranks[2].forward), "all-to-all-v 16");
  EXPECT_EQ(boundary.ranks[4].all_to_all_forward, (std::vector<Interval>{{8, 16}, {0, 0}}));
  EXPECT_EQ(Text(boundary.ranks[0].forward), "");
  // After the broadcast over stages {4, 5} have shard 0 and {6, 7} shard 1; lane 1 wants shard 1.
  EXPECT_EQ(Text(boundary.ranks[6].backward), "broadcast 8");
  EXPECT_NE(StepShape(boundary.ranks[0]), StepShape(boundary.ranks[2]));
  EXPECT_EQ(StepShape(boundary.ranks[0]), StepShape(boundary.ranks[1]));
}

// Two samples of one image each for 8 lanes: lane k has spans ⌊k·2/8⌋ … ⌊(k+1)·2/8⌋−1, so lanes 3
// and 7 have one each and the others none.
TEST(ColocatedBoundaryTest, MoreLanesThanImagesLeaveLanesEmpty) {
  const BoundaryTokens tokens{.tokens_per_sample = 5,
                              .span_tokens = 5,
                              .samples_per_microbatch = 1,
                              .num_microbatches = 1,
                              .width = 1};
  const Boundary boundary =
      BuildColocatedBoundary(Grid({.dp = 8}, 1), Grid({.tp = 4, .dp = 2}, 1), tokens, 8);
  EXPECT_EQ(boundary.ranks[0].forward[0].member_tokens, (std::vector<std::int64_t>{0, 0, 0, 5}));
  EXPECT_EQ(Text(boundary.ranks[0].backward), "select 0");
  EXPECT_EQ(boundary.ranks[7].held_forward, (Interval{5, 10}));
}

TEST(ColocatedBoundaryTest, NoTokensMakeNoTrouble) {
  const BoundaryTokens tokens{.tokens_per_sample = 0,
                              .span_tokens = 0,
                              .samples_per_microbatch = 1,
                              .num_microbatches = 2,
                              .width = 1};
  const Boundary colocated =
      BuildColocatedBoundary(Grid({.dp = 8}, 1), Grid({.tp = 4, .dp = 2}, 1), tokens, 8);
  EXPECT_EQ(colocated.tokens_forward, 0);
  const Boundary apart =
      BuildNonColocatedBoundary(Grid({.dp = 2}, 1), Grid({.tp = 2, .first_rank = 2}, 1), tokens, 4);
  EXPECT_TRUE(apart.ranks[0].sends_forward.empty());
}

TEST(ColocatedBoundaryTest, OtherRanksAreAnError) {
  try {
    BuildColocatedBoundary(Grid({.dp = 4}, 1), Grid({.dp = 8}, 1), Samples(1), 8);
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(),
                 "colocated modules need the same ranks: the source has 4 from rank 0 on, the "
                 "destination 8 from rank 0 on");
  }
}

// Paper §3.2, Fig. 2: encoder DP4 TP2 (ranks 0–7) → LLM DP2 TP4 (8–15). A shard has 8 tokens, a
// lane 4; the leader of a lane is its last rank, of a shard its first.
TEST(NonColocatedBoundaryTest, FanInSendsToOneLeaderAndBroadcasts) {
  const Boundary boundary = BuildNonColocatedBoundary(
      Grid({.tp = 2, .dp = 4}, 1), Grid({.tp = 4, .dp = 2, .first_rank = 8}, 1), Samples(2), 16);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kFanIn);
  EXPECT_EQ(boundary.factor, 2);
  EXPECT_EQ(Text(boundary.ranks[3].forward), "transfers 4");
  EXPECT_EQ(Text(boundary.ranks[2].forward), "");
  EXPECT_EQ(boundary.ranks[3].sends_forward,
            (std::vector<BoundaryMessage>{{Rank(8), Interval{4, 8}}}));
  EXPECT_EQ(boundary.ranks[8].receives_forward,
            (std::vector<BoundaryMessage>{{Rank(1), Interval{0, 4}}, {Rank(3), Interval{4, 8}}}));
  EXPECT_EQ(Text(boundary.ranks[8].forward), "transfers 8, broadcast 8");
  EXPECT_EQ(Text(boundary.ranks[9].forward), "broadcast 8");
  EXPECT_EQ(Text(boundary.ranks[8].backward), "transfers 8");
  EXPECT_EQ(Text(boundary.ranks[9].backward), "");
  EXPECT_EQ(Text(boundary.ranks[3].backward), "transfers 4, broadcast 4");
  EXPECT_EQ(Text(boundary.ranks[2].backward), "broadcast 4");
  // The root comes first.
  EXPECT_EQ(GroupsUsed(boundary, false, CollectiveKind::kBroadcast),
            (Lists{{1, 0}, {3, 2}, {5, 4}, {7, 6}}));
}

// The dual: encoder DP2 TP4 → LLM DP4 TP2.
TEST(NonColocatedBoundaryTest, FanOutSplitsForwardAndConcatenatesBackward) {
  const Boundary boundary = BuildNonColocatedBoundary(
      Grid({.tp = 4, .dp = 2}, 1), Grid({.tp = 2, .dp = 4, .first_rank = 8}, 1), Samples(1), 16);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kFanOut);
  EXPECT_EQ(boundary.factor, 2);
  EXPECT_EQ(boundary.ranks[3].sends_forward,
            (std::vector<BoundaryMessage>{{Rank(8), Interval{0, 4}}, {Rank(10), Interval{4, 8}}}));
  EXPECT_EQ(boundary.ranks[3].receives_backward, boundary.ranks[3].sends_forward);
  EXPECT_EQ(Text(boundary.ranks[3].backward), "transfers 8, broadcast 8");
  EXPECT_EQ(Text(boundary.ranks[10].forward), "transfers 4, broadcast 4");
}

// Paper Fig. 1: encoder DP2 on ranks 0, 1 and LLM TP2 PP2 on 2..5. The second stage has no part.
TEST(NonColocatedBoundaryTest, OnlyTheFirstStageTakesPart) {
  const Boundary boundary = BuildNonColocatedBoundary(
      Grid({.dp = 2}, 1), Grid({.tp = 2, .pp = 2, .first_rank = 2}, 1), Samples(1), 6);
  EXPECT_EQ(GroupsUsed(boundary, true, CollectiveKind::kBroadcast), (Lists{{2, 3}}));
  EXPECT_TRUE(boundary.ranks[4].forward.empty() && boundary.ranks[4].backward.empty());
  EXPECT_EQ(Text(boundary.ranks[0].backward), "transfers 2");
}

// Three lanes into two shards of 6 tokens: 4 + (2, 2) + 4. The middle lane serves both.
TEST(NonColocatedBoundaryTest, LeadersThatDoNotDivideSendWhereIntervalsOverlap) {
  const BoundaryTokens tokens{.tokens_per_sample = 6,
                              .span_tokens = 2,
                              .samples_per_microbatch = 1,
                              .num_microbatches = 3,
                              .width = 1};
  const Boundary boundary =
      BuildNonColocatedBoundary(Grid({.dp = 3}, 1), Grid({.dp = 2, .first_rank = 3}, 1), tokens, 5);
  EXPECT_EQ(boundary.boundary_case, BoundaryCase::kIrregular);
  EXPECT_EQ(boundary.tokens_forward, 36);
  EXPECT_EQ(boundary.ranks[1].sends_forward,
            (std::vector<BoundaryMessage>{{Rank(3), Interval{4, 6}}, {Rank(4), Interval{6, 8}}}));
}

// LLM TP2 CP2 from rank 1 on: the leader's cp group is {1, 3}; ranks 2 and 4 stay out of the sum.
TEST(NonColocatedBoundaryTest, GradientsOfContextParallelRanksAreSummedAtTheLeader) {
  const Boundary boundary = BuildNonColocatedBoundary(
      Grid({}, 1), Grid({.tp = 2, .cp = 2, .first_rank = 1}, 1), Samples(1), 5);
  EXPECT_EQ(GroupsUsed(boundary, false, CollectiveKind::kReduce), (Lists{{1, 3}}));
  EXPECT_EQ(Text(boundary.ranks[1].backward), "reduce 4, transfers 4");
  EXPECT_EQ(Text(boundary.ranks[2].backward), "");
  EXPECT_EQ(GroupsUsed(boundary, true, CollectiveKind::kBroadcast), (Lists{{1, 2, 3, 4}}));
}

TEST(NonColocatedBoundaryTest, SharedRanksAreAnError) {
  EXPECT_THROW(BuildNonColocatedBoundary(Grid({.dp = 4}, 1), Grid({.dp = 4, .first_rank = 3}, 1),
                                         Samples(1), 7),
               base::Error);
}

/// "F/B" of a step in GB (10⁹ bytes) with two decimals, as the paper prints them.
std::string PayloadText(const Boundary& boundary, std::int64_t num_microbatches) {
  const base::Bytes bf16(2);
  const auto gigabytes = [](base::Bytes bytes) { return static_cast<double>(bytes.value()) / 1e9; };
  return fmt::format("{:.2f}/{:.2f}", gigabytes(PayloadForward(boundary, num_microbatches, bf16)),
                     gigabytes(PayloadBackward(boundary, num_microbatches, bf16)));
}

/// Batch 256 over DP16: 16 samples a shard, one a microbatch; `percent` of 8192 tokens are vision.
BoundaryTokens PaperTokens(std::int64_t percent) {
  return {.tokens_per_sample = 8192 * percent / 100,
          .span_tokens = 1024,
          .samples_per_microbatch = 1,
          .num_microbatches = 16,
          .width = 8192};
}

// Reference §2.6. Forward: the gathered shard, 16 samples · 2048 tokens · 8192 · 2 B = 0.537 GB;
// backward: the rank's own slot, half of it.
TEST(BoundaryPayloadTest, ColocatedIsThePapers) {
  for (const AxisOrder order : {AxisOrder::kTpCpDpPp, AxisOrder::kTpCpPpDp}) {
    const Grid encoder({.tp = 8, .dp = 32}, 1);
    const Grid llm({.tp = 8, .pp = 2, .dp = 16, .order = order}, 1);
    const auto payload = [&](std::int64_t percent) {
      const Boundary boundary = BuildColocatedBoundary(encoder, llm, PaperTokens(percent), 256);
      EXPECT_EQ(boundary.boundary_case, BoundaryCase::kFanIn);
      EXPECT_EQ(boundary.ranks[0].groups[0].size(), 2U);
      return PayloadText(boundary, 16);
    };
    EXPECT_EQ(payload(25), "0.54/0.27");
    EXPECT_EQ(payload(50), "1.07/0.54");
    EXPECT_EQ(payload(75), "1.61/0.81");
  }
}

// Reference §2.6. 32 samples go through each of the 8 encoder lanes: 32 · 2048 · 8192 · 2 B =
// 1.074 GB, and the gradients of as many come back.
TEST(BoundaryPayloadTest, NonColocatedIsThePapers) {
  const Grid encoder({.dp = 8}, 1);
  const Grid llm({.tp = 8, .pp = 2, .dp = 16, .first_rank = 8}, 1);
  const auto payload = [&](std::int64_t percent) {
    return PayloadText(BuildNonColocatedBoundary(encoder, llm, PaperTokens(percent), 264), 16);
  };
  EXPECT_EQ(payload(25), "1.07/1.07");
  EXPECT_EQ(payload(50), "2.15/2.15");
  EXPECT_EQ(payload(75), "3.22/3.22");
}

TEST(BoundaryCaseTest, HasNames) {
  EXPECT_EQ(ToText(BoundaryCase::kLocal), "local");
  EXPECT_EQ(ToText(BoundaryCase::kFanIn), "fan-in");
  EXPECT_EQ(ToText(BoundaryCase::kIrregular), "irregular");
}

}  // namespace
}  // namespace isthmus::plan
