// Samples dealt to data parallel copies and microbatches by what they cost.

#include "plan/build/balance_samples.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/model/balanced_order.h"
#include "plan/program/program.h"
#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tests::EncoderOf;
using tests::JobOf;
using tests::LlmOf;
using tests::ProblemsOf;

using Loads = std::vector<std::int64_t>;

std::int64_t LargestShard(const Loads& loads, const std::vector<std::int32_t>& order,
                          const SampleParts& parts) {
  const std::int64_t room = parts.num_microbatches * parts.microbatch_size;
  std::int64_t largest = 0;
  for (std::int64_t shard = 0; shard < parts.num_shards; ++shard) {
    std::int64_t sum = 0;
    for (std::int64_t slot = 0; slot < room; ++slot) {
      const auto place = static_cast<std::size_t>(shard * room + slot);
      sum += loads[order.empty() ? place : static_cast<std::size_t>(order[place])];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

TEST(BalancedOrder, HeavyAndLightSamplesMeetOnEveryShard) {
  // Two shards of two microbatches of a sample; as drawn 16 against 2. In order of load: 0 to shard
  // 0, its first microbatch; 1 to shard 1, whose second microbatch has less over all shards; 2 and
  // 3 to what is left: 9 on both, and 9 in both rounds.
  EXPECT_THAT(BalancedOrder(Loads{8, 8, 1, 1}, {2, 2, 1}), ElementsAre(0, 2, 3, 1));
}

TEST(BalancedOrder, AnOrderThatIsAsGoodStays) {
  EXPECT_THAT(BalancedOrder(Loads{8, 1, 1, 8}, {2, 2, 1}), IsEmpty());
  EXPECT_THAT(BalancedOrder(Loads{3, 3, 3, 3}, {2, 2, 1}), IsEmpty());
  EXPECT_THAT(BalancedOrder(Loads{5, 0, 2}, {1, 1, 3}), IsEmpty());
}

TEST(BalancedOrder, MicrobatchesOfOneShardAreEvenToo) {
  // One shard, two microbatches of two: as drawn 16 and 2, then 8 + 1 each. Within a microbatch the
  // lower number stands first.
  EXPECT_THAT(BalancedOrder(Loads{8, 8, 1, 1}, {1, 2, 2}), ElementsAre(0, 2, 1, 3));
}

TEST(BalancedOrder, EqualSamplesGoByTheirNumbersAndPartsKeepTheirSize) {
  // Sample 5 (6) to shard 0, samples 3 and 4 (5 each) to shards 1 and 2, sample 2 (4) to the lower
  // of those two, which is full then; sample 0 to shard 2, which has less, sample 1 to shard 0.
  // Rounds: 3 and 4 go to the second microbatch, where less is.
  const Loads loads{0, 0, 4, 5, 5, 6};
  const SampleParts parts{3, 2, 1};
  const std::vector<std::int32_t> order = BalancedOrder(loads, parts);
  EXPECT_THAT(order, ElementsAre(5, 1, 2, 3, 0, 4));
  EXPECT_EQ(LargestShard(loads, order, parts), 9);
  EXPECT_EQ(LargestShard(loads, {}, parts), 11);
}

TEST(BalancedOrder, IsAnOrderAndNeverWorse) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    base::RandomStream random(seed, "balanced order");
    const SampleParts parts{random.UniformInt(1, 6), random.UniformInt(1, 5),
                            random.UniformInt(1, 4)};
    Loads loads;
    for (std::int64_t sample = 0; sample < parts.num_samples(); ++sample)
      loads.push_back(random.Chance(0.3) ? 0 : random.UniformInt(0, 9));
    const std::vector<std::int32_t> order = BalancedOrder(loads, parts);
    ASSERT_EQ(order, BalancedOrder(loads, parts));
    if (order.empty()) continue;
    std::vector<std::int32_t> sorted = order;
    std::ranges::sort(sorted);
    std::vector<std::int32_t> all(loads.size());
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(sorted, all);
    EXPECT_LE(LargestShard(loads, order, parts), LargestShard(loads, {}, parts)) << seed;
  }
}

/// A job of two encoders on all ranks, with such counts.
Job TwoEncoders(std::vector<std::int32_t> images, std::vector<std::int32_t> clips) {
  Job job = JobOf(Placement::kColocated,
                  {EncoderOf("vision", {.dp = 4}), EncoderOf("sound", {.tp = 2, .dp = 2}),
                   LlmOf({.tp = 2, .dp = 2})},
                  2);
  std::vector<std::int32_t>* counts[] = {&images, &clips};
  for (std::size_t index = 0; index < 2; ++index) {
    Module& encoder = job.modules[index];
    const std::int64_t most = *std::ranges::max_element(*counts[index]);
    encoder.tokens_per_sample = encoder.llm_tokens_per_sample = most * encoder.span_tokens;
    encoder.spans_of_sample = std::move(*counts[index]);
  }
  return job;
}

TEST(BalanceSamples, OneOrderForAllEncoders) {
  // Spans of both cost the same: loads 8, 8, 1, 1 by images and clips together.
  Job job = TwoEncoders({6, 4, 1, 0}, {2, 4, 0, 1});
  BalanceSamples(job);
  EXPECT_THAT(job.workload.sample_order, ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(job.modules[0].spans_of_sample, ElementsAre(6, 1, 0, 4));
  EXPECT_THAT(job.modules[1].spans_of_sample, ElementsAre(2, 0, 1, 4));
  EXPECT_EQ(job.workload.SampleAt(1), 2);
  EXPECT_EQ(ProblemsOf(Build(job)), "");
}

TEST(BalanceSamples, AFrozenEncoderCountsItsForwardOnly) {
  // Backward is about twice the forward: two images of a trained encoder weigh more than a clip, of
  // a frozen one less; the heaviest are dealt out first.
  const Job trained = TwoEncoders({2, 2, 0, 0}, {0, 0, 1, 1});
  Job job = trained;
  BalanceSamples(job);
  EXPECT_THAT(job.workload.sample_order, ElementsAre(0, 2, 3, 1));
  job = trained;
  job.modules[0].settings.frozen = true;
  BalanceSamples(job);
  EXPECT_THAT(job.workload.sample_order, ElementsAre(2, 0, 1, 3));
}

TEST(BalanceSamples, AlikeSamplesStay) {
  Job job =
      JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 4}), LlmOf({.tp = 2, .dp = 2})}, 2);
  BalanceSamples(job);
  EXPECT_THAT(job.workload.sample_order, IsEmpty());
}

TEST(BalanceSamples, TheProgramsHashKnowsWhichSamplesMoved) {
  Job job = TwoEncoders({6, 4, 1, 0}, {2, 4, 0, 1});
  BalanceSamples(job);
  const std::uint64_t moved = Hash(Build(job));
  job.workload.sample_order.clear();
  EXPECT_NE(Hash(Build(job)), moved);
}

}  // namespace
}  // namespace isthmus::plan
