// GemmModel, AttentionModel, MemoryModel, SustainedClock, KernelModel and RooflineModel on round
// figures: 100 SMs of 1 TFLOP/s, memory 1 TB/s (cost_profiles.cc).
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/cost/kernel_model.h"
#include "tests/unit/sim/cost_profiles.h"

namespace isthmus::sim {
namespace {

using ::testing::HasSubstr;

plan::Gemm Product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {
      .m = m, .n = n, .k = k, .dtype = plan::DType::kBf16, .output_bytes = base::Bytes(2 * m * n)};
}

double GemmUs(const plan::Gemm& gemm, const profiles::Profile& profile = RoundProfile()) {
  return GemmModel(profile, SustainedClock(profile)).Time(gemm).value() * 1e6;
}

double AttentionUs(const plan::Attention& attention,
                   const profiles::Profile& profile = RoundProfile()) {
  return AttentionModel(profile, SustainedClock(profile)).Time(attention).value() * 1e6;
}

plan::Attention Core(std::int64_t span, bool causal, bool backward) {
  return {.num_sequences = 1,
          .query_len = span,
          .kv_len = span,
          .heads = 8,
          .kv_heads = 8,
          .head_dim = 128,
          .causal = causal,
          .backward = backward,
          .kernel = plan::AttentionKernel::kCudnn};
}

std::string ErrorOf(const auto& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(GemmModel, OneFullWaveTakesTheTimeOfOneTile) {
  // 10 x 10 tiles of 128x256 on 100 SMs: one wave. Tile: 2·128·256·1000 / 1e12 = 65.536 us.
  // Latency 1 us, half of the output's 2·1280·2560 B / 1e12 = 6.5536 us is exposed.
  EXPECT_NEAR(GemmUs(Product(1280, 2560, 1000)), 1 + 65.536 + 6.5536 / 2, 1e-6);
}

TEST(GemmModel, ABrokenLastWaveIsPaidForInPart) {
  // 10 x 11 tiles: w = 1.1; paid 0.5·1.1 + 0.5·2 = 1.55 waves. Output 2·1280·2816 B = 7.20896 us.
  // 128x128 tiles: 220, w = 2.2, paid 2.6 · 32.768/0.9 = 94.66 us: better than 1.55 · 65.536 =
  // 101.58.
  EXPECT_NEAR(GemmUs(Product(1280, 2816, 1000)), 1 + 2.6 * 32.768 / 0.9 + 7.20896 / 2, 1e-6);
}

TEST(GemmModel, FewTilesAreSplitAlongK) {
  // 128 x 128 x 1000 is one tile of 128x128; in 8 parts: 2·16384·125 / 0.9e12 = 4.551111 us of
  // math, partial sums 8·128·128·8 B = 1.048576 us, second kernel 2 us.
  EXPECT_NEAR(GemmUs(Product(128, 128, 1000)), 1 + 4.5511111 + 1.048576 + 2 + 0.032768 / 2, 1e-6);
}

TEST(GemmModel, AShortInnerDimensionIsBoundByMemory) {
  // Operands 2·(1280·16 + 2560·16) = 122,880 B, output 6,553,600 B: 6.67648 us; math takes 1.05 us.
  EXPECT_NEAR(GemmUs(Product(1280, 2560, 16)), 1 + 6.67648 + 6.5536 / 2, 1e-6);
}

TEST(GemmModel, AccumulatingOutputCostsItsTraffic) {
  plan::Gemm wgrad = Product(1280, 2560, 1000);
  wgrad.output_bytes = base::Bytes(8 * 1280 * 2560);  // fp32 read and written: 26.2144 us
  EXPECT_NEAR(GemmUs(wgrad), 1 + 65.536 + 26.2144 / 2, 1e-6);
}

TEST(GemmModel, TheSustainedClockSlowsMathOnly) {
  const profiles::Profile slow = With(RoundProfile(), {{"clock.bf16.ratio", 0.8}});
  EXPECT_NEAR(GemmUs(Product(1280, 2560, 1000), slow), 1 + 65.536 / 0.8 + 6.5536 / 2, 1e-6);
}

// One chip has one clock: a 16-bit product beside fp8 ones runs at theirs.
TEST(GemmModel, SixteenBitProductsOfAnFp8RunTakeItsClock) {
  const profiles::Profile slow =
      With(RoundProfile(), {{"clock.bf16.ratio", 0.8}, {"clock.fp8.ratio", 0.5}});
  plan::Gemm head = Product(1280, 2560, 1000);
  head.in_fp8_run = true;
  EXPECT_NEAR(GemmUs(head, slow), 1 + 65.536 / 0.5 + 6.5536 / 2, 1e-6);
  plan::Attention core = Core(1000, true, false);
  core.in_fp8_run = true;
  EXPECT_NEAR(AttentionUs(core, slow), 5 + 8.192 / 0.5, 1e-6);
}

// RoundProfile and fp8 kernels of twice the bf16 rate, block-scaled ones of 1.6 times that
// expose 1.2 times their output's write.
profiles::Profile Fp8Profile() {
  profiles::ProfileBuilder builder("fp8");
  const auto set = [&](const std::string& key, double value, const std::string& unit) {
    builder.Set(key, {.value = value,
                      .unit = unit,
                      .mark = profiles::Mark::kAssumed,
                      .source = "test",
                      .residual = {},
                      .strict = {},
                      .origin = {}});
  };
  set("clock.fp8.ratio", 1, "1");
  set("fp8.promoted.max_exposed_epilogue", 1, "1");
  for (const std::string name : {"gemm.fp8", "gemm.fp8_promoted"}) {
    const bool is_block = name == "gemm.fp8_promoted";
    set(name + ".peak_rate", is_block ? 160e12 : 200e12, "FLOP/s");
    set(name + ".latency", 1e-6, "s");
    set(name + ".exposed_epilogue", is_block ? 1.2 : 0.5, "1");
    set(name + ".memory_bandwidth", 1e12, "B/s");
    set(name + ".wave_quantization", 0.5, "1");
    set(name + ".half_tile_efficiency", 0.9, "1");
  }
  return profiles::MergeProfiles("round", {RoundProfile(), std::move(builder).Build()});
}

// 65.536 us of math in bf16 are 32.768 in fp8, and half of 6.5536 us of writing shows; 40.96 where
// sums are promoted, and all of it shows, with block scales 1.2 times that.
TEST(GemmModel, PromotionCostsRateAndEpilogueAndBlockScalesMore) {
  plan::Gemm gemm = Product(1280, 2560, 1000);
  gemm.dtype = plan::DType::kFp8;
  EXPECT_NEAR(GemmUs(gemm, Fp8Profile()), 1 + 32.768 + 6.5536 / 2, 1e-6);
  gemm.promoted_accumulation = true;
  EXPECT_NEAR(GemmUs(gemm, Fp8Profile()), 1 + 40.96 + 6.5536, 1e-6);
  gemm.block_scaled = true;
  EXPECT_NEAR(GemmUs(gemm, Fp8Profile()), 1 + 40.96 + 1.2 * 6.5536, 1e-6);
}

TEST(GemmModel, AnEmptyProductTakesNoTime) { EXPECT_EQ(GemmUs(Product(0, 2560, 1000)), 0); }

TEST(GemmModel, AnUnknownDataTypeIsTheUsersToMend) {
  plan::Gemm gemm = Product(128, 128, 128);
  gemm.dtype = plan::DType::kFp8;
  EXPECT_EQ(ErrorOf([&] { (void)GemmUs(gemm); }),
            "error: profile round has no parameters gemm.fp8.*: matrix products in fp8 are not "
            "known for this GPU");
}

TEST(AttentionModel, ReachesHalfOfItsRateAtTheHalfSpan) {
  // 4·8·1000²·128/2 = 2.048 GFLOP at 500 TFLOP/s · 1000/2000 = 8.192 us, and 5 us of latency.
  EXPECT_NEAR(AttentionUs(Core(1000, true, false)), 5 + 8.192, 1e-6);
}

TEST(AttentionModel, FullMasksComputeTwiceAsMuchAndBackwardTwoAndAHalfTimes) {
  // Full: 4.096 GFLOP at 500e12·1000/1250 = 400e12: 10.24 us.
  EXPECT_NEAR(AttentionUs(Core(1000, false, false)), 5 + 10.24, 1e-6);
  // Backward, causal: 5.12 GFLOP at 400e12/2: 25.6 us.
  EXPECT_NEAR(AttentionUs(Core(1000, true, true)), 5 + 25.6, 1e-6);
}

TEST(AttentionModel, SmallHeadsArePaddedAndRunAtTheirOwnRate) {
  plan::Attention small = Core(1000, true, false);
  small.head_dim = 48;  // computed as 64: half the FLOP of 128 at 0.75 of the rate
  EXPECT_NEAR(AttentionUs(small), 5 + 8.192 / 2 / 0.75, 1e-6);
  small.head_dim = 72;  // computed as 128
  EXPECT_NEAR(AttentionUs(small), 5 + 8.192, 1e-6);
  small.head_dim = 160;
  EXPECT_EQ(ErrorOf([&] { (void)AttentionUs(small); }),
            "error: attention kernel cudnn has no head size of 160 or more in profile round");
}

TEST(AttentionModel, OnlyThrottledImplementationsFollowTheClock) {
  const profiles::Profile slow = With(RoundProfile(), {{"clock.bf16.ratio", 0.8}});
  plan::Attention core = Core(1000, true, false);
  EXPECT_NEAR(AttentionUs(core, slow), 5 + 8.192 / 0.8, 1e-6);
  core.kernel = plan::AttentionKernel::kFlash2;
  EXPECT_NEAR(AttentionUs(core, slow), 5 + 8.192, 1e-6);
}

TEST(AttentionModel, UnfusedPaysForItsScoresInMemory) {
  plan::Attention core = Core(1000, true, false);
  core.kernel = plan::AttentionKernel::kUnfused;
  // Full mask: 4.096 GFLOP at 0.5·100e12 = 81.92 us; 13 B · 8e6 scores at 0.5e12 = 208 us; 4
  // launches.
  EXPECT_NEAR(AttentionUs(core), 20 + 81.92 + 208, 1e-6);
  core.backward = true;
  EXPECT_NEAR(AttentionUs(core), 2 * (20 + 81.92 + 208), 1e-6);
}

TEST(AttentionModel, AnUnknownImplementationIsTheUsersToMend) {
  plan::Attention core = Core(1000, true, false);
  core.kernel = plan::AttentionKernel::kFlash3;
  EXPECT_THAT(ErrorOf([&] { (void)AttentionUs(core); }),
              HasSubstr("has no parameters attention.flash3.*"));
}

TEST(MemoryModel, BytesAtTheClassesShareOfThePeakAndALatencyPerLaunch) {
  const MemoryModel model(RoundProfile());
  // 8 MB at 0.8e12: 10 us; two launches of 3 us.
  EXPECT_NEAR(model.Time({plan::MemoryClass::kNorm, base::Bytes(8'000'000), 2}).value() * 1e6, 16,
              1e-9);
  EXPECT_NEAR(model.Time({plan::MemoryClass::kCast, base::Bytes(8'000'000), 1}).value() * 1e6, 19,
              1e-9);
  EXPECT_EQ(model.Time({plan::MemoryClass::kCast, base::Bytes(0), 1}), base::Seconds(0));
}

// The step of the optimizer costs 1 ms besides: 4 MB at 0.5e12 take 8 us, 50 launches 150 us.
TEST(MemoryModel, AnOptimizerStepHasALatencyOfItsOwn) {
  const MemoryModel model(RoundProfile());
  EXPECT_NEAR(model.Time({plan::MemoryClass::kOptimizer, base::Bytes(4'000'000), 50}).value() * 1e6,
              1158, 1e-9);
}

TEST(MemoryModel, AnEfficiencyAboveOneIsRefused) {
  EXPECT_EQ(
      ErrorOf([] {
        MemoryModel model(With(RoundProfile(), {{"memory.norm.efficiency", 1.2}}));
      }),
      "error: parameter memory.norm.efficiency of profile round is 1.2, needs to be in (0, 1]");
}

TEST(SustainedClock, RefusesRatiosOutsideZeroAndOneAndUnknownTypes) {
  EXPECT_EQ(ErrorOf([] {
              SustainedClock clock(With(RoundProfile(), {{"clock.bf16.ratio", 1.1}}));
            }),
            "error: parameter clock.bf16.ratio of profile round is 1.1, needs to be in (0, 1]");
  EXPECT_EQ(ErrorOf([] { (void)SustainedClock(RoundProfile()).Ratio(plan::DType::kFp8); }),
            "error: profile round has no parameter clock.fp8.ratio");
}

TEST(KernelModel, CountsAGapForEachLaunch) {
  const KernelModel model(RoundProfile());
  EXPECT_EQ(model.LaunchGap(Product(128, 128, 128)), base::Seconds(1e-6));
  EXPECT_EQ(model.LaunchGap(plan::MemoryBound{plan::MemoryClass::kNorm, base::Bytes(8), 3}),
            base::Seconds(3e-6));
  EXPECT_EQ(model.LaunchGap(Product(0, 128, 128)), base::Seconds(0));
}

TEST(KernelModel, RefusesAProfileThatBeatsTheDataSheet) {
  // 1280·2560·1000·2 = 6.5536 TFLOP·1e-3; the data sheet's 50 TFLOP/s allow 131 us, the fit
  // says 70.
  const KernelModel model(With(RoundProfile(), {{"device.peak_rate.bf16", 50e12}}));
  EXPECT_EQ(ErrorOf([&] { (void)model.Time(Product(1280, 2560, 1000)); }),
            "error: profile round makes a matrix product 1280 x 2560 x 1000 take 69.8 us, less "
            "than the data sheet's "
            "131 us\n  hint: check its rates against device.*");
}

TEST(RooflineModel, IsTheLongerOfMathAndOutput) {
  const RooflineModel model(RoundProfile());
  EXPECT_NEAR(model.Time(Product(1280, 2560, 1000)).value() * 1e6, 6.5536,
              1e-9);  // both equal here
  EXPECT_NEAR(model.Time(Product(1280, 2560, 2000)).value() * 1e6, 13.1072, 1e-9);
  EXPECT_NEAR(model.Time(Core(1000, true, false)).value() * 1e6, 2.048, 1e-9);
  EXPECT_EQ(model.LaunchGap(Product(1280, 2560, 1000)), base::Seconds(0));
}

}  // namespace
}  // namespace isthmus::sim
