// Comparisons of predictions with runs of the same random programs.

#include "reports/comparison.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/alignment.h"
#include "reports/json.h"
#include "tests/support/random_job.h"
#include "tests/support/twin_traces.h"

namespace isthmus::tests {
namespace {

using nlohmann::json;
using reports::Comparison;

constexpr std::uint64_t kFirstSeed = 52'000;
constexpr std::uint64_t kNumJobs = 40;

plan::Program ProgramOf(std::uint64_t seed) {
  return plan::Build(RandomJob(seed, {.max_ranks = 16, .absent_backward = false}));
}

traces::Trace AsMeasured(traces::Trace trace) {
  trace.header.kind = traces::TraceKind::kMeasured;
  return trace;
}

Comparison CompareTraces(const traces::Trace& predicted, const traces::Trace& measured) {
  return reports::Compare(reports::AlignTraces(predicted, measured));
}

void ExpectTermsSum(const Comparison& comparison) {
  const reports::PathError& path = comparison.path;
  EXPECT_EQ(path.compute.predicted_ps + path.collective.predicted_ps + path.wait.predicted_ps +
                path.host.predicted_ps,
            comparison.predicted_window_ps);
  EXPECT_EQ(path.compute.measured_ps + path.collective.measured_ps + path.wait.measured_ps +
                path.host.measured_ps,
            comparison.measured_window_ps);
}

TEST(Comparison, OfAPredictionWithItselfHasNoErrors) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const traces::Trace trace = Predict(ProgramOf(seed));
    const Comparison comparison = CompareTraces(trace, AsMeasured(trace));
    ExpectTermsSum(comparison);
    EXPECT_EQ(comparison.path.compute.difference_ps(), 0);
    EXPECT_EQ(comparison.path.collective.difference_ps(), 0);
    EXPECT_EQ(comparison.path.wait.difference_ps(), 0);
    EXPECT_EQ(comparison.path.host.difference_ps(), 0);
    EXPECT_EQ(comparison.predicted.shares, comparison.measured.shares);
    for (const reports::ComparedRow& row : comparison.ops) {
      EXPECT_EQ(row.time.difference_s(), 0) << row.key;
    }
    EXPECT_TRUE(comparison.lone.empty());
    EXPECT_TRUE(comparison.problems.empty());
  }
}

TEST(Comparison, IsTheSameForAFoldedPrediction) {
  int num_folded = 0;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const plan::Program program = ProgramOf(seed);
    const traces::Trace measured = MeasureOnFake(program);
    const traces::Trace folded = Predict(program, sim::Folding::kAuto);
    num_folded += folded.header.classes.size() < measured.header.classes.size() ? 1 : 0;
    json one = json::parse(reports::RenderJson(CompareTraces(folded, measured)));
    json other = json::parse(reports::RenderJson(CompareTraces(Predict(program), measured)));
    one["predicted"].erase("folded");
    other["predicted"].erase("folded");
    EXPECT_EQ(one, other);
  }
  EXPECT_GE(num_folded, static_cast<int>(kNumJobs) / 4);
}

TEST(Comparison, OfARunSumsToThePicosecondAndJoinsEverything) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const plan::Program program = ProgramOf(seed);
    const Comparison comparison = CompareTraces(Predict(program), MeasureOnFake(program));
    ExpectTermsSum(comparison);
    EXPECT_EQ(comparison.path.wait.measured_ps, 0) << "what held an op up is on the path";
    EXPECT_TRUE(comparison.lone.empty());
    for (const auto& problem : comparison.problems) ADD_FAILURE() << problem.text;
    double predicted = 0;
    double measured = 0;
    for (const reports::TwinTime& time : comparison.ranks.back().uses) {
      predicted += time.predicted_s;
      measured += time.measured_s;
    }
    EXPECT_NEAR(predicted, comparison.predicted.step_time_s, 1e-12);
    EXPECT_NEAR(measured, comparison.measured.step_time_s, 1e-12);
  }
}

// Clocks apart change nothing but what is said of clocks: the measurement is a prediction whose
// durations are known to the picosecond.
TEST(Comparison, DoesNotSeeClocksThatAreApart) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumJobs; ++seed) {
    SCOPED_TRACE(seed);
    const traces::Trace trace = Predict(ProgramOf(seed));
    traces::Trace skewed = AsMeasured(trace);
    SkewClocks(RandomClocks(seed, trace.header.classes.size(), 1'000'000'000, 0), skewed);
    const Comparison comparison = CompareTraces(trace, skewed);
    ExpectTermsSum(comparison);
    for (const reports::ComparedRow& row : comparison.ops) {
      EXPECT_EQ(row.time.difference_s(), 0) << row.key;
    }
    EXPECT_TRUE(comparison.problems.empty());
  }
}

}  // namespace
}  // namespace isthmus::tests
