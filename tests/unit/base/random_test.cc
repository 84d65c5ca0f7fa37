#include "base/random.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace isthmus::base {
namespace {

TEST(RandomStream, IsAFunctionOfSeedAndPurpose) {
  RandomStream a(7, "images");
  RandomStream b(7, "images");
  RandomStream other_purpose(7, "audio");
  RandomStream other_seed(8, "images");
  const std::uint64_t first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, other_purpose.Next());
  EXPECT_NE(first, other_seed.Next());
}

// Pinned, so that stored results stay what they were: a change here changes every seeded scenario.
TEST(RandomStream, NumbersStayWhatTheyWere) {
  RandomStream stream(1, "pinned");
  const std::vector<std::int64_t> drawn = {stream.UniformInt(0, 999), stream.UniformInt(0, 999),
                                           stream.UniformInt(0, 999), stream.UniformInt(0, 999)};
  EXPECT_EQ(drawn, (std::vector<std::int64_t>{403, 242, 456, 727}));
}

TEST(RandomStream, UniformIntReachesAllValuesEvenly) {
  RandomStream stream(3, "dice");
  std::vector<int> counts(6);
  constexpr int kNumDraws = 60'000;
  for (int draw = 0; draw < kNumDraws; ++draw) {
    ++counts.at(static_cast<std::size_t>(stream.UniformInt(1, 6) - 1));
  }
  // Each count is binomial with mean 10000 and deviation sqrt(10000 · 5/6) = 91; 5 deviations.
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * 91);
}

TEST(RandomStream, UniformIntTakesTheWidestRanges) {
  RandomStream stream(3, "wide");
  EXPECT_EQ(stream.UniformInt(5, 5), 5);
  EXPECT_NE(stream.UniformInt(INT64_MIN, INT64_MAX), stream.UniformInt(INT64_MIN, INT64_MAX));
}

TEST(RandomStream, UniformRealLiesInTheUnitInterval) {
  RandomStream stream(3, "real");
  double sum = 0.0;
  constexpr int kNumDraws = 10'000;
  for (int draw = 0; draw < kNumDraws; ++draw) {
    const double value = stream.UniformReal();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  // Deviation of the mean: sqrt(1/12 / 10000) = 0.0029; 5 deviations.
  EXPECT_NEAR(sum / kNumDraws, 0.5, 5 * 0.0029);
}

TEST(RandomStream, NormalHasItsMeanAndDeviation) {
  RandomStream stream(3, "normal");
  constexpr int kNumDraws = 20'000;
  double sum = 0.0;
  double sum_of_squares = 0.0;
  for (int draw = 0; draw < kNumDraws; ++draw) {
    const double value = stream.Normal(10.0, 2.0);
    sum += value;
    sum_of_squares += value * value;
  }
  const double mean = sum / kNumDraws;
  // Deviation of the mean 2/sqrt(20000) = 0.014, of the deviation about 2/sqrt(40000) = 0.01.
  EXPECT_NEAR(mean, 10.0, 5 * 0.014);
  EXPECT_NEAR(std::sqrt(sum_of_squares / kNumDraws - mean * mean), 2.0, 5 * 0.01);
}

TEST(RandomStream, ShuffleKeepsTheItems) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  const std::vector<int> sorted = items;
  RandomStream stream(3, "shuffle");
  stream.Shuffle(std::span(items));
  EXPECT_NE(items, sorted);
  EXPECT_EQ(std::set<int>(items.begin(), items.end()).size(), sorted.size());
}

}  // namespace
}  // namespace isthmus::base
