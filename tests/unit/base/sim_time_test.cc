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

}  // namespace
}  // namespace isthmus::base
