#include "sim/cost/duty_relief.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/sim/cost_profiles.h"

namespace isthmus::sim {
namespace {

constexpr PowerBalance kBalance = {
    .enabled = false, .static_share = 0.2, .exponent = 2, .memory_share = 0.9, .idle_share = 0.5};

TEST(DutyRelief, AtFullDutyThereIsNone) {
  const DutyRelief relief = RelieveClock({.tensor_s = 3}, 0.8, kBalance);
  EXPECT_NEAR(relief.clock_ratio, 0.8, 1e-12);
  EXPECT_NEAR(relief.step_time_s, 3, 1e-12);
}

TEST(DutyRelief, WhatIsSavedRaisesTheClockToTheLimit) {
  // With x = r/r0: T_t/x·0.8·(x² - 1) = 0.1·T_m + 0.5·T_i. T_t = 10, T_m = 2, T_i = 1:
  // 8·(x² - 1) = 0.7·x, so x = (0.7 + sqrt(0.49 + 256)) / 16.
  const double x = (0.7 + std::sqrt(0.49 + 256)) / 16;
  const DutyRelief relief =
      RelieveClock({.tensor_s = 10, .memory_s = 2, .idle_s = 1}, 0.8, kBalance);
  EXPECT_NEAR(relief.clock_ratio, 0.8 * x, 1e-9);
  EXPECT_NEAR(relief.step_time_s, 10 / x + 3, 1e-9);
}

TEST(DutyRelief, BurstIsTheMost) {
  const DutyRelief relief = RelieveClock({.tensor_s = 1, .idle_s = 9}, 0.8, kBalance);
  EXPECT_EQ(relief.clock_ratio, 1);
  EXPECT_NEAR(relief.step_time_s, 9.8, 1e-12);
}

TEST(DutyRelief, ShippedProfilesLeaveItOff) {
  for (const char* gpu : {"h100-sxm", "h200-sxm", "a100-sxm"}) {
    EXPECT_FALSE(ReadPowerBalance(ShippedProfile(gpu)).enabled);
  }
  EXPECT_THROW((void)ReadPowerBalance(
                   With(ShippedProfile("h100-sxm"), {{"clock.duty_relief.idle_share", 2}})),
               base::Error);
}

}  // namespace
}  // namespace isthmus::sim
