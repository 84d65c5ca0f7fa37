#include "base/sim_time.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/unit_literals.h"

namespace isthmus::base {
namespace {

using namespace literals;

template <typename A, typename B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
static_assert(!CanAdd<SimTime, SimTime>, "points in time don't add");
static_assert(!CanAdd<SimTime, double>);
static_assert(!CanAdd<Picoseconds, Seconds>);
static_assert(CanAdd<SimTime, Picoseconds> && CanAdd<SimTime, Seconds>);

TEST(SimTime, AddingSecondsRoundsToTheNearestPicosecond) {
  EXPECT_EQ((SimTime::FromPs(10) + 2.4_ps).ps(), 12);
  EXPECT_EQ((SimTime::FromPs(10) + 2.6_ps).ps(), 13);
  EXPECT_EQ((SimTime() + 1_s).ps(), 1'000'000'000'000);
}

TEST(SimTime, APositiveDurationNeverBecomesZero) {
  EXPECT_EQ(ToPicoseconds(Seconds(1e-15)), Picoseconds(1));
  EXPECT_EQ(ToPicoseconds(Seconds(-1e-15)), Picoseconds(-1));
  EXPECT_EQ(ToPicoseconds(Seconds(0.0)), Picoseconds(0));
}

TEST(SimTime, DifferenceOfPointsIsADuration) {
  EXPECT_EQ(SimTime::FromPs(12) - SimTime::FromPs(5), Picoseconds(7));
  EXPECT_DOUBLE_EQ(SimTime::FromPs(2'500'000'000'000).since_start().value(), 2.5);
}

TEST(SimTime, DurationsBeyondTheClockAreErrors) {
  EXPECT_EQ(ToPicoseconds(Seconds(9e6)).value(), 9'000'000'000'000'000'000);
  EXPECT_THROW(ToPicoseconds(Seconds(1e7)), Error);
  EXPECT_THROW(ToPicoseconds(Seconds(std::numeric_limits<double>::quiet_NaN())), Error);
  EXPECT_THROW(ToPicoseconds(Seconds(std::numeric_limits<double>::infinity())), Error);
}

TEST(SimTime, SumsPastTheClockAreErrorsThatNameWhatTakesThatLong) {
  // The clock ends at 2^63 - 1 ps = 9,223,372.04 s.
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const auto name = [] { return std::string("op 3"); };
  EXPECT_EQ(Later(kEnd - 5, 5, name), kEnd);
  try {
    Later(kEnd - 5, 6, name);
    FAIL() << "past the end";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "op 3 takes 6e-12 s from 9.223e+06 s on, past the simulated clock's range of 106 "
                 "days\n  hint: look for a rate or a time that no machine has, or simulate fewer "
                 "steps (step.num_steps)");
  }
  EXPECT_EQ(RoundPicoseconds(2.5), 3);
  EXPECT_THROW(RoundPicoseconds(9.3e18), Error);
  EXPECT_THROW(RoundPicoseconds(std::numeric_limits<double>::quiet_NaN()), Error);
}

}  // namespace
}  // namespace isthmus::base
