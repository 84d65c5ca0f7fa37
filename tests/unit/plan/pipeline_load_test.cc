#include "plan/build/pipeline_load.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using tests::JobOf;
using tests::LlmOf;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// By program_jobs.h a layer has 7,077,888 parameters in matrices, the head 32,000 · 768. At 6
// FLOP/s forward and backward, 6 FLOP a parameter and token, take a second each.
constexpr double kLayer = 7'077'888;
constexpr double kHead = 32'000.0 * 768;
constexpr DeviceRates kProductsAlone{.products_16bit = 6,
                                     .products_fp8 = 12,
                                     .attention = kInfinite,
                                     .memory = kInfinite,
                                     .link = kInfinite};

TEST(PipelineLoad, ProductsWeighByTheirFlop) {
  const PipelineLoad load =
      LoadOf(JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2})}), 0, kProductsAlone);
  EXPECT_EQ(load.num_layers, 8);
  EXPECT_EQ(load.num_stages, 2);
  EXPECT_DOUBLE_EQ(load.first_extra, 0);
  EXPECT_DOUBLE_EQ(load.last_extra, kHead / kLayer);
}

// A layer's products are fp8, the head's stay 16 bit.
TEST(PipelineLoad, Fp8ProductsHaveTheirOwnRate) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2})});
  job.modules.front().settings.precision = DType::kFp8;
  EXPECT_DOUBLE_EQ(LoadOf(job, 0, kProductsAlone).last_extra, kHead / (kLayer / 2));
}

// 2 · T · span · 768 FLOP forward (causal), 2.5 times that backward: 768 · span s a token at 7
// FLOP/s.
TEST(PipelineLoad, AttentionReachesAsFarAsASpan) {
  DeviceRates rates = kProductsAlone;
  rates.attention = 7;
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2})});
  EXPECT_DOUBLE_EQ(LoadOf(job, 0, rates).last_extra, kHead / (kLayer + 768 * 1536));
  job.modules.front().span_tokens = 96;
  EXPECT_DOUBLE_EQ(LoadOf(job, 0, rates).last_extra, kHead / (kLayer + 768 * 96));
}

// Keys and values of the group, 2 · 2 B · 4T · 768, are gathered in both passes and their gradients
// scattered, 3/4 of it over the link each: 12 · 768 · 3 B a token.
TEST(PipelineLoad, CollectivesOverCpCountItsRanks) {
  DeviceRates rates = kProductsAlone;
  rates.link = 0.012;
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.cp = 4, .pp = 2})});
  job.modules.front().settings.context_parallel = ContextParallel::kAllGather;
  EXPECT_DOUBLE_EQ(LoadOf(job, 0, rates).last_extra, kHead / (kLayer + 1000 * 768 * 3));
}

}  // namespace
}  // namespace isthmus::plan
