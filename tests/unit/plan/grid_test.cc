#include "plan/layout/grid.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace isthmus::plan {
namespace {

using base::Rank;

std::vector<int> Values(const std::vector<Rank>& ranks) {
  std::vector<int> values;
  for (const Rank rank : ranks) {
    values.push_back(rank.value());
  }
  return values;
}

std::vector<std::vector<int>> Values(const std::vector<std::vector<Rank>>& groups) {
  std::vector<std::vector<int>> values;
  for (const std::vector<Rank>& group : groups) {
    values.push_back(Values(group));
  }
  return values;
}

using Lists = std::vector<std::vector<int>>;

TEST(AxisSetTest, TextFollowsTheOrderOfAxes) {
  EXPECT_EQ(ToText(kPp | kTp), "tp+pp");
  EXPECT_EQ(ToText(kDp | kCp), "cp+dp");
  EXPECT_EQ(ToText(kDpShard), "dp_shard");
  EXPECT_EQ(ToText(kDpReplica | kPp), "dp_replica+pp");
  EXPECT_EQ(ToText(AxisSet{}.Others()), "tp+cp+ep+dp+pp");
  EXPECT_EQ(ToText(AxisSet{}), "");
}

TEST(LayoutTest, TextLeavesOutWhatIsOne) {
  EXPECT_EQ(ToText(Layout{.tp = 8, .pp = 2, .dp = 16}), "TP8 PP2 DP16");
  EXPECT_EQ(ToText(Layout{.tp = 1, .cp = 2, .pp = 4, .vpp = 3, .dp = 8, .ep = 4, .etp = 2}),
            "TP1 CP2 PP4 VPP3 DP8 EP4 ETP2");
}

// The first axis is the fastest: with tp 2, dp 2, pp 2 the stages are {0..3} and {4..7}.
TEST(GridTest, DpInsidePpKeepsStagesTogether) {
  const Grid grid({.tp = 2, .pp = 2, .dp = 2, .order = AxisOrder::kTpCpDpPp}, 1);
  EXPECT_EQ(Values(grid.Groups(kTp)), (Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(Values(grid.Groups(kDp)), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(Values(grid.Groups(kPp)), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(GridTest, PpInsideDpKeepsCopiesTogether) {
  const Grid grid({.tp = 2, .pp = 2, .dp = 2, .order = AxisOrder::kTpCpPpDp}, 1);
  EXPECT_EQ(Values(grid.Groups(kPp)), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(Values(grid.Groups(kDp)), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(Values(grid.Groups(kTp | kPp)), (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

// Two optimizer instances: shards are neighbours (0, 1 and 2, 3), replicas two apart.
TEST(GridTest, OptimizerInstancesSplitDpWithShardsFaster) {
  const Grid grid({.dp = 4, .first_rank = 8}, 2);
  EXPECT_EQ(Values(grid.Groups(kDpShard)), (Lists{{8, 9}, {10, 11}}));
  EXPECT_EQ(Values(grid.Groups(kDpReplica)), (Lists{{8, 10}, {9, 11}}));
  EXPECT_EQ(Values(grid.Group(Rank(10), kDp)), (std::vector<int>{8, 9, 10, 11}));
}

// Stage 1 of tp 2, pp 2, dp 2 with the stages of a copy together: copies {0..3} and {4..7}.
TEST(GridTest, StageViewKeepsStrides) {
  const Grid grid({.tp = 2, .pp = 2, .dp = 2, .order = AxisOrder::kTpCpPpDp}, 1);
  const Grid stage = grid.StageView(1);
  EXPECT_EQ(Values(stage.Ranks()), (std::vector<int>{2, 3, 6, 7}));
  EXPECT_EQ(stage.num_ranks(), 4);
  EXPECT_EQ(stage.size(Axis::kPp), 1);
  EXPECT_TRUE(stage.contains(Rank(6)));
  for (const int outside : {0, 1, 4, 5, 8, 10}) {
    EXPECT_FALSE(stage.contains(Rank(outside))) << outside;
  }
  EXPECT_EQ(Values(stage.Groups(kDp)), (Lists{{2, 6}, {3, 7}}));
  EXPECT_EQ(stage.GroupIndex(Rank(7), kTp), 1);
}

TEST(GridTest, NeighbourWrapsAround) {
  const Grid grid({.tp = 2, .pp = 4, .dp = 1, .first_rank = 16}, 1);
  EXPECT_EQ(grid.Neighbour(Rank(17), Axis::kPp, 1), Rank(19));
  EXPECT_EQ(grid.Neighbour(Rank(17), Axis::kPp, -1), Rank(23));
  EXPECT_EQ(grid.Neighbour(Rank(23), Axis::kPp, 1), Rank(17));
}

TEST(GridDeathTest, RefusesWhatIsNoGrid) {
  EXPECT_DEATH(Grid({.tp = 0}, 1), "at least 1");
  EXPECT_DEATH(Grid({.dp = 4}, 3), "do not divide");
  const Grid grid({.tp = 2}, 1);
  EXPECT_DEATH(grid.Coordinate(Rank(2), Axis::kTp), "not in the grid");
  EXPECT_DEATH(grid.StageView(1), "stage 1 of 1");
}

}  // namespace
}  // namespace isthmus::plan
