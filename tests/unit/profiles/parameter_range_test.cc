#include "profiles/parameter_range.h"

#include <gtest/gtest.h>

namespace isthmus::profiles {
namespace {

TEST(ParameterRange, RatesAreAboveZeroAndTimesAndBytesAreNotNegative) {
  EXPECT_FALSE(RangeOf("gemm.bf16.peak_rate", "FLOP/s").Holds(0));
  EXPECT_TRUE(RangeOf("gemm.bf16.peak_rate", "FLOP/s").Holds(8e14));
  EXPECT_TRUE(RangeOf("host.launch_gap", "s").Holds(0));
  EXPECT_FALSE(RangeOf("host.launch_gap", "s").Holds(-1e-9));
  EXPECT_FALSE(RangeOf("ledger.workspace", "B").Holds(-1));
  EXPECT_FALSE(RangeOf("ledger.workspace", "B").Holds(1e30));
  EXPECT_FALSE(RangeOf("step.straggler_base_gpus", "1").Holds(-8));
}

TEST(ParameterRange, SharesSwitchesAndFactorsHaveRangesOfTheirOwn) {
  EXPECT_FALSE(RangeOf("clock.bf16.ratio", "1").Holds(7));
  EXPECT_FALSE(RangeOf("clock.bf16.ratio", "1").Holds(0));
  EXPECT_TRUE(RangeOf("clock.bf16.ratio", "1").Holds(1));
  EXPECT_FALSE(RangeOf("attention.flash2.throttled", "1").Holds(2));
  EXPECT_FALSE(RangeOf("ledger.reserved.factor", "1").Holds(0.5));
  EXPECT_FALSE(RangeOf("ledger.verdict_margin", "1").Holds(-1));
  EXPECT_EQ(ToText(RangeOf("clock.bf16.ratio", "1")), "above 0, at most 1");
}

}  // namespace
}  // namespace isthmus::profiles
