#include "base/statistics.h"

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

}  // namespace
}  // namespace isthmus::base
