#include "base/statistics.h"

#include <cmath>

#include <gtest/gtest.h>

namespace isthmus::base {
namespace {

TEST(Statistics, MedianIsTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(Statistics, ModeIsWhereMostLieWhateverTheTail) {
  // Half of {10, 10.1, 10.2, 30, 50}: the first three; of those the nearer two, equal distances:
  // the middle.
  EXPECT_DOUBLE_EQ(HalfSampleMode({50, 10, 10.2, 30, 10.1}), 10.1);
  EXPECT_DOUBLE_EQ(HalfSampleMode({1, 2, 2.5}), 2.25);
  EXPECT_DOUBLE_EQ(HalfSampleMode({7}), 7);
  EXPECT_DOUBLE_EQ(HalfSampleMode({7, 9}), 8);
}

TEST(Statistics, SpreadIsTheMedianDistanceAsAFraction) {
  EXPECT_DOUBLE_EQ(RelativeSpread({9, 10, 14}, 10), 0.1);
}

TEST(Statistics, PoolsNeighboursThatFall) {
  // 4 and 1 have the geometric mean 2, which falls short of the 8 before: (8 · 4 · 1)^(1/3).
  const std::vector<double> risen = NeverFalling({1, 8, 4, 1, 9});
  ASSERT_EQ(risen.size(), 5U);
  EXPECT_DOUBLE_EQ(risen[0], 1);
  for (int at = 1; at < 4; ++at)
    EXPECT_NEAR(risen[static_cast<std::size_t>(at)], std::cbrt(32.0), 1e-12);
  EXPECT_NEAR(risen[4], 9, 1e-12);
  EXPECT_TRUE(NeverFalling({}).empty());
}

}  // namespace
}  // namespace isthmus::base
