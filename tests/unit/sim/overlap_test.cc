// SegmentModel with models whose times are round: a matrix product takes m us, a memory-bound
// kernel its bytes in us, a collective its bytes in us; 100 SMs, gaps of 1 us (cost_profiles.cc).
#include "sim/cost/overlap.h"

#include <variant>

#include <gtest/gtest.h>

#include "tests/unit/sim/cost_profiles.h"

namespace isthmus::sim {
namespace {

class RowsModel : public ComputeModel {
 public:
  base::Seconds Time(const plan::Kernel& kernel) const override {
    if (const auto* gemm = std::get_if<plan::Gemm>(&kernel))
      return base::Seconds(static_cast<double>(gemm->m) * 1e-6);
    if (const auto* attention = std::get_if<plan::Attention>(&kernel)) {
      return base::Seconds(static_cast<double>(attention->query_len) * 1e-6);
    }
    return base::Seconds(static_cast<double>(std::get<plan::MemoryBound>(kernel).bytes.value()) *
                         1e-6);
  }
  base::Seconds LaunchGap(const plan::Kernel& kernel) const override {
    return base::Seconds(1e-6) * NumLaunches(kernel);
  }
};

class BytesModel : public CollectiveModel {
 public:
  base::Seconds Time(plan::CollectiveKind, base::Bytes size,
                     const topology::GroupLocality& group) const override {
    return group.num_ranks == 1 ? base::Seconds(0)
                                : base::Seconds(static_cast<double>(size.value()) * 1e-6);
  }
  base::Seconds P2P(base::Bytes, const topology::Route&) const override { return base::Seconds(0); }
  base::Seconds Copy(base::Bytes, plan::CopyDirection, const topology::Route&) const override {
    return base::Seconds(0);
  }
};

class OverlapTest : public ::testing::Test {
 protected:
  plan::Segment Segment(plan::Overlap overlap, std::int64_t rows, std::int64_t collective) {
    plan::Segment segment;
    segment.name = "test";
    segment.kernels = {plan::Gemm{.m = rows, .n = 8, .k = 8}};
    if (collective > 0) {
      segment.collective = plan::InnerCollective{.kind = plan::CollectiveKind::kAllGather,
                                                 .axes = plan::kTp,
                                                 .bytes = base::Bytes(collective)};
    }
    segment.overlap = overlap;
    return segment;
  }
  SegmentCost Cost(const plan::Segment& segment, int num_ranks = 4) {
    const SegmentCost cost = model_.Cost(segment, InOneNode(num_ranks));
    EXPECT_NEAR(cost.total.value(), (cost.host + cost.compute + cost.exposed).value(), 1e-15);
    return cost;
  }
  static double Us(base::Seconds time) { return time.value() * 1e6; }

  RowsModel compute_;
  BytesModel collectives_;
  SegmentModel model_{RoundProfile(), compute_, collectives_};
};

TEST_F(OverlapTest, NoneRunsOneAfterTheOther) {
  const SegmentCost cost = Cost(Segment(plan::Overlap::kNone, 800, 100));
  EXPECT_NEAR(Us(cost.total), 1 + 800 + 100, 1e-9);
  EXPECT_NEAR(Us(cost.exposed), 100, 1e-9);
  EXPECT_NEAR(Us(cost.host), 1, 1e-9);
}

TEST_F(OverlapTest, BulkHidesTheShorterAndTakesItsSms) {
  // 16 of 100 SMs for 100 us.
  EXPECT_NEAR(Us(Cost(Segment(plan::Overlap::kBulk, 800, 100)).total), 1 + 800 + 16, 1e-9);
  const SegmentCost exposed = Cost(Segment(plan::Overlap::kBulk, 800, 1000));
  EXPECT_NEAR(Us(exposed.total), 1 + 1000 + 0.16 * 800, 1e-9);
  EXPECT_NEAR(Us(exposed.exposed), 200, 1e-9);
}

TEST_F(OverlapTest, GatherInHidesAllButTheFirstChunk) {
  // 1024 rows on 4 ranks: chunks of 256 rows, 4·256 us: the mean is 1024 us. Hidden up to 768 us.
  const SegmentCost hidden = Cost(Segment(plan::Overlap::kGatherIn, 1024, 500));
  EXPECT_NEAR(Us(hidden.total), 1 + 1024 + 0.04 * 500, 1e-9);
  EXPECT_EQ(Us(hidden.exposed), 0);
  const SegmentCost exposed = Cost(Segment(plan::Overlap::kGatherIn, 1024, 1000));
  EXPECT_NEAR(Us(exposed.exposed), 1000 - 768, 1e-9);
  EXPECT_NEAR(Us(exposed.total), 1 + 1024 + 0.04 * 1000 + 232, 1e-9);
}

TEST_F(OverlapTest, ScatterOutRunsTheWholeProductOnFewerSms) {
  // 800 us · 100/80 + 3 further chunks of 3 us = 1009 us; a quarter of the scatter is exposed.
  const SegmentCost cost = Cost(Segment(plan::Overlap::kScatterOut, 800, 100));
  EXPECT_NEAR(Us(cost.compute), 1009, 1e-9);
  EXPECT_NEAR(Us(cost.exposed), 25, 1e-9);
  // A scatter longer than the product: 2009 us, a quarter and three quarters of the difference.
  EXPECT_NEAR(Us(Cost(Segment(plan::Overlap::kScatterOut, 800, 2009)).exposed), 2009 / 4.0 + 750,
              1e-9);
}

TEST_F(OverlapTest, OnlyMatrixProductsAreSlowed) {
  plan::Segment segment = Segment(plan::Overlap::kScatterOut, 800, 100);
  segment.kernels.emplace_back(
      plan::MemoryBound{plan::MemoryClass::kElementwise, base::Bytes(50), 2});
  const SegmentCost cost = Cost(segment);
  EXPECT_NEAR(Us(cost.compute), 1009 + 50, 1e-9);
  EXPECT_NEAR(Us(cost.host), 3, 1e-9);
}

TEST_F(OverlapTest, RingHidesEachExchangeBehindItsStep) {
  plan::Segment ring = Segment(plan::Overlap::kRing, 1, 150);
  ring.collective->steps = 2;
  const auto step = [](std::int64_t tokens) {
    return plan::Attention{.num_sequences = 1,
                           .query_len = tokens,
                           .kv_len = tokens,
                           .heads = 1,
                           .kv_heads = 1,
                           .head_dim = 128};
  };
  ring.kernels = {step(100), step(200), step(200)};
  // max(100, 150) + max(200, 150) + 200, three gaps.
  const SegmentCost cost = Cost(ring);
  EXPECT_NEAR(Us(cost.total), 3 + 550, 1e-9);
  EXPECT_NEAR(Us(cost.exposed), 50, 1e-9);
  EXPECT_NEAR(Us(cost.communication), 300, 1e-9);
}

TEST_F(OverlapTest, WithoutACollectiveOrInAGroupOfOneTheKernelsAreLeft) {
  for (const plan::Overlap overlap : {plan::Overlap::kNone, plan::Overlap::kBulk,
                                      plan::Overlap::kGatherIn, plan::Overlap::kScatterOut}) {
    EXPECT_NEAR(Us(Cost(Segment(overlap, 800, 0)).total), 801, 1e-9);
    EXPECT_NEAR(Us(Cost(Segment(overlap, 800, 100), 1).total), 801, 1e-9);
  }
}

TEST_F(OverlapTest, GradientSyncTakesItsShareOfTheSms) {
  EXPECT_NEAR(model_.gradient_sync_share(), 0.16, 1e-12);  // 16 of 100
}

TEST_F(OverlapTest, VariableLengthStepsOfARingTakeLonger) {
  plan::Attention step{.num_sequences = 1,
                       .query_len = 8192,
                       .kv_len = 8192,
                       .heads = 8,
                       .kv_heads = 8,
                       .head_dim = 128};
  const auto ring = [&] {
    const plan::InnerCollective exchange{plan::CollectiveKind::kRingExchange, plan::kCp,
                                         base::Bytes(1), 1};
    const plan::Segment segment{
        .kernels = {step, step}, .collective = exchange, .overlap = plan::Overlap::kRing};
    return model_.Cost(segment, InOneNode(2)).compute.value();
  };
  const double fixed = ring();
  step.variable_length = true;
  EXPECT_NEAR(ring(), fixed / 0.8, 1e-12);  // the efficiency of the test's profile
}

}  // namespace
}  // namespace isthmus::sim
