#include "studies/band.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "studies/kernel_times.h"
#include "tests/support/small_decoder.h"

namespace isthmus::studies {
namespace {

// One GPU's worth of matrix products with little else: 8 GPUs, no tensor parallelism.
const std::string kComputeBound = tests::SmallDecoder("tp: 1, dp: 8");

TEST(BandTest, TheClockDecidesAComputeBoundStep) {
  const auto scenario = scenarios::ParseScenario(kComputeBound, "compute.yaml");
  const StepSimulation simulation(scenario);
  const double step = simulation.Predict("test").step_time_s;
  EXPECT_DOUBLE_EQ(simulation.StepTime(scenario.profile, scenario.cluster), step);
  const StepBand band = EstimateBand(simulation, step);
  ASSERT_EQ(band.parts[0].what, "sustained clock");
  // 0.80 / 0.77 - 1 = +3.9 % and 0.80 / 0.83 - 1 = -3.6 % of the tensor kernels' 75 to 95 %.
  EXPECT_GT(band.parts[0].high, 0.75 * 0.0390);
  EXPECT_LT(band.parts[0].high, 0.95 * 0.0390);
  EXPECT_LT(band.parts[0].low, -0.75 * 0.0361);
  EXPECT_GT(band.parts[0].low, -0.95 * 0.0361);
  double high = 0;
  for (const BandPart& part : band.parts) high += part.high * part.high;
  EXPECT_DOUBLE_EQ(band.high_step_time_s, step * (1 + std::sqrt(high)));
  EXPECT_LT(band.low_step_time_s, step);
}

TEST(BandTest, OtherSettingsMoveTheEnds) {
  StepBand band{.low_step_time_s = 9, .high_step_time_s = 11, .parts = {}};
  Widen({12, 8}, 10, band);
  EXPECT_DOUBLE_EQ(band.low_step_time_s, 7.2);    // 8 less a tenth
  EXPECT_DOUBLE_EQ(band.high_step_time_s, 13.2);  // 12 and a tenth
}

TEST(KernelTimesTest, ProductsOfALayerAreCountedOverMicrobatchesAndLayers) {
  const auto scenario = scenarios::ParseScenario(kComputeBound, "compute.yaml");
  const StepSimulation simulation(scenario);
  const auto times = KernelTimes(simulation.program(), scenario.profile);
  double all = 0;
  for (const KernelTime& time : times) all += time.seconds;
  const double step = simulation.Predict("test").step_time_s;
  EXPECT_GT(all, 0.8 * step);
  EXPECT_LT(all, step);
  // The longest are the MLP's: 4096 tokens by 16384 by 4096, in 16 layers of 8 microbatches.
  EXPECT_THAT(times[0].segment, testing::HasSubstr("fc"));
  EXPECT_EQ(times[0].count, 16 * 8);
  EXPECT_EQ(times[0].residual, "gemm.bf16.peak_rate");
}

}  // namespace
}  // namespace isthmus::studies
