// Clocks of ranks that stand apart are found from what the ranks do together, and put right.

#include "traces/clock_skew.h"

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/random_job.h"
#include "tests/support/twin_traces.h"
#include "traces/check_measured.h"
#include "traces/meetings.h"

namespace isthmus::tests {
namespace {

constexpr std::uint64_t kFirstSeed = 41'000;
constexpr std::uint64_t kNumJobs = 40;
constexpr std::int64_t kMillisecond = 1'000'000'000;

traces::Trace TrueTrace(std::uint64_t seed) {
  return Predict(plan::Build(RandomJob(seed, {.max_ranks = 16, .max_steps = 1})));
}

std::vector<std::string> TextsOf(const std::vector<traces::MeasuredProblem>& problems) {
  std::vector<std::string> texts;
  for (const traces::MeasuredProblem& problem : problems) texts.push_back(problem.text);
  return texts;
}

TEST(ClockSkew, OfOneClockIsNone) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const traces::Trace truth = TrueTrace(seed);
    const traces::ClockSkew skew = traces::EstimateClockSkew(truth);
    EXPECT_FALSE(skew.has_offsets);
    EXPECT_FALSE(skew.has_drift);
    traces::Trace corrected = truth;
    traces::PutOnOneClock(corrected);
    EXPECT_TRUE(corrected.events == truth.events);
  }
}

// A rank that records only when it came and when it was over loses nothing: the last partner's
// arrival is found again. (Matched Compute may be held up longer, by hosts: it keeps its starts.)
TEST(MeetPartners, FindsWhenTheLastCame) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const traces::Trace truth = TrueTrace(seed);
    traces::Trace measured = truth;
    for (const traces::Meeting& meeting : traces::FindMeetings(truth)) {
      for (const std::size_t index : meeting.events) {
        traces::Event& event = measured.events[index];
        const traces::RankClass& rank_class = truth.header.classes[event.rank_class];
        if (truth.header.roles[rank_class.role].ops[event.op].kind == "compute") continue;
        event.start_ps = event.issue_ps;
      }
    }
    traces::MeetPartners(measured);
    EXPECT_EQ(LargestDifference(truth, measured), 0);
  }
}

TEST(ClockSkew, ConstantOffsetsAreFoundToThePicosecond) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const traces::Trace truth = TrueTrace(seed);
    const std::size_t num_ranks = truth.header.classes.size();
    const auto clocks = RandomClocks(seed, num_ranks, 700 * kMillisecond, 0);
    traces::Trace measured = truth;
    SkewClocks(clocks, measured);
    const traces::ClockSkew skew = traces::EstimateClockSkew(measured);
    EXPECT_TRUE(skew.has_offsets);
    EXPECT_FALSE(skew.has_drift);
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      ASSERT_EQ(skew.clocks[rank].reference, 0) << "all ranks meet in the world's sums";
      const auto offset = static_cast<double>(clocks[rank].offset_ps - clocks[0].offset_ps);
      EXPECT_NEAR(skew.clocks[rank].offset_ps, offset, 0.5) << "rank " << rank;
    }
    traces::PutOnOneClock(measured);
    EXPECT_EQ(LargestDifference(truth, measured), 0);
    EXPECT_EQ(TextsOf(traces::CheckMeasured(measured)), std::vector<std::string>{});
  }
}

// Drifts of up to 50 ppm, as of free-running quartz: between two ranks 100 ppm of the step from end
// to end. Pairs of ranks that do fewer than eight things together keep theirs; in the median of all
// ends a hundredth of it is left at most.
TEST(ClockSkew, DriftsAreFoundWhenTheDataShowThem) {
  int num_drifting = 0;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const traces::Trace truth = TrueTrace(seed);
    traces::Trace measured = truth;
    SkewClocks(RandomClocks(seed, truth.header.classes.size(), 700 * kMillisecond, 50e-6),
               measured);
    const traces::ClockSkew skew = traces::EstimateClockSkew(measured);
    num_drifting += skew.has_drift ? 1 : 0;
    traces::RemoveClockSkew(skew, measured);
    const std::int64_t end_to_end = truth.trailer.end_ps / 10'000;  // 100 ppm between two ranks
    // The reference drifts too, and with it the length of everything: 50 ppm of it.
    EXPECT_LE(LargestDifference(truth, measured), end_to_end) << "at worst";
    if (skew.has_drift) {
      EXPECT_LE(skew.residual_ps, 2 + 1e-2 * static_cast<double>(end_to_end));
    }
  }
  // In small steps no pair does eight things together.
  EXPECT_GE(num_drifting, static_cast<int>(kNumJobs) / 2);
}

// Ends come late by an exponential time of mean 20 us, each on its own: differences have a median
// whose standard error is 20 us / sqrt(n) for n samples, so a tenth of the offsets' 1 ms is ample.
TEST(ClockSkew, NoiseOfWakingUpMovesOffsetsLittle) {
  constexpr double kMeanDelay = 20e6;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    traces::Trace measured = TrueTrace(seed);
    const auto clocks = RandomClocks(seed, measured.header.classes.size(), 100 * kMillisecond, 0);
    base::RandomStream random(seed, "delays");
    for (traces::Event& event : measured.events) {
      const double delay = -kMeanDelay * std::log(1 - random.UniformReal());
      event.end_ps += static_cast<std::int64_t>(delay);
    }
    SkewClocks(clocks, measured);
    const traces::ClockSkew skew = traces::EstimateClockSkew(measured);
    EXPECT_TRUE(skew.has_offsets);
    for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
      const auto offset = static_cast<double>(clocks[rank].offset_ps - clocks[0].offset_ps);
      EXPECT_NEAR(skew.clocks[rank].offset_ps, offset, 0.1 * static_cast<double>(kMillisecond));
    }
  }
}

TEST(MeasuredCheck, FindsNothingInRunsOfTheFakeBackend) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const traces::Trace measured =
        MeasureOnFake(plan::Build(RandomJob(seed, {.max_ranks = 16, .absent_backward = false})));
    EXPECT_EQ(TextsOf(traces::CheckMeasured(measured)), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace isthmus::tests
