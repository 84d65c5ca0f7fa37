// Ops that vary at random: the draws, and what the engine makes of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"
#include "sim/cost/jitter_model.h"
#include "tests/unit/sim/tiny_program.h"

namespace isthmus::sim {
namespace {

using Kind = JitterModel::Kind;
using enum topology::TimeVariation::Distribution;

constexpr std::uint64_t kSeed = 7;
constexpr double kDeviation = 0.2;

topology::Jitter JitterOf(double compute, double communication,
                          topology::TimeVariation::Distribution distribution = kLognormal) {
  return {.seed = kSeed,
          .compute = {.distribution = distribution, .deviation = compute},
          .communication = {.distribution = distribution, .deviation = communication}};
}

// docs/models/jitter.md, written down a second time: the lognormal factor of an op without stalls.
double Factor(double deviation, const char* stream, int rank, int step, std::uint32_t op,
              std::uint32_t inner = 0) {
  base::RandomStream random(
      base::HashBuilder(kSeed).Add(rank).Add(step).Add(op).Add(inner).digest(), stream);
  random.UniformReal();  // would there be a stall?
  const double sigma = std::sqrt(std::log(1 + deviation * deviation));
  return std::exp(sigma * random.Normal(0, 1) - sigma * sigma / 2);
}
std::int64_t Compute(std::int64_t alone_ps, int rank, std::uint32_t op, int step = 0) {
  return std::llround(Factor(kDeviation, "jitter.compute", rank, step, op) *
                      static_cast<double>(alone_ps));
}
std::int64_t Communication(std::int64_t alone_ps, int rank, std::uint32_t op,
                           std::uint32_t inner = 0) {
  return std::llround(Factor(kDeviation, "jitter.communication", rank, 0, op, inner) *
                      static_cast<double>(alone_ps));
}

TinyRun RunWith(const plan::Program& program, const topology::Jitter& jitter,
                bool expanded = false) {
  const JitterModel model(jitter);
  return RunGiven(program, {.expanded = expanded, .jitter = &model});
}

TEST(JitterModel, FactorsHaveMeanOneAndTheirDeviation) {
  constexpr int kDraws = 100'000;
  constexpr std::int64_t kAlone = 1'000'000'000;
  for (const auto distribution : {kLognormal, kExponential}) {
    const JitterModel model(JitterOf(kDeviation, kDeviation, distribution));
    for (const Kind kind : {Kind::kCompute, Kind::kCommunication}) {
      double sum = 0;
      double squares = 0;
      double least = 2;
      for (int draw = 0; draw < kDraws; ++draw) {
        const JitterModel::Key key{base::Rank(draw % 1000), draw / 10'000,
                                   static_cast<std::uint32_t>(draw / 1000 % 10), 0};
        const double factor =
            static_cast<double>(model.Vary(kAlone, kind, key)) / static_cast<double>(kAlone);
        sum += factor;
        squares += (factor - 1) * (factor - 1);
        least = std::min(least, factor);
      }
      // Four standard errors: of the mean 0.2 / sqrt(1e5) = 0.0006 each.
      EXPECT_NEAR(sum / kDraws, 1, 0.0025);
      // Of the variance of the exponential sqrt(8 / 1e5) = 0.9 %, of the lognormal less.
      EXPECT_NEAR(squares / kDraws, kDeviation * kDeviation, 0.036 * kDeviation * kDeviation);
      if (distribution == kExponential) {
        EXPECT_GE(least, 1 - kDeviation - 1e-9);
      }
    }
  }
}

TEST(JitterModel, StallsComeAsOftenAsTheyShouldAndLeaveFactorsAlone) {
  topology::Jitter jitter = JitterOf(kDeviation, 0);
  const JitterModel smooth(jitter);
  jitter.compute.stall = {.probability = 0.01, .time = base::Seconds(2e-3)};
  const JitterModel stalling(jitter);
  int stalls = 0;
  for (std::uint32_t op = 0; op < 100'000; ++op) {
    const JitterModel::Key key{base::Rank(1), 0, op, 0};
    const std::int64_t more =
        stalling.Vary(1'000'000, Kind::kCompute, key) - smooth.Vary(1'000'000, Kind::kCompute, key);
    if (more == 0) continue;
    EXPECT_EQ(more, 2'000'000'000);
    ++stalls;
  }
  // 1,000, four times sqrt(1e5 · 0.01 · 0.99) = 31 about it.
  EXPECT_NEAR(stalls, 1000, 126);
  EXPECT_EQ(stalling.Vary(0, Kind::kCompute, {}), 0);
}

TEST(Jitter, TheSlowerOfTwoCopiesSetsTheStep) {
  plan::Program program = EmptyProgram({.dp = 2});
  RoleSketch sketch(program);
  const auto value = sketch.NewValue();
  sketch.Compute(3'000'000, {.produces = {value}});
  sketch.AllReduce(500'000, plan::kDp, {.consumes = {value}});
  sketch.Give({0, 1});
  const TinyRun run = RunWith(program, JitterOf(kDeviation, kDeviation));
  const std::int64_t ready = std::max(Compute(3'000'000, 0, 0), Compute(3'000'000, 1, 0));
  const std::int64_t sum = std::max(Communication(500'000, 0, 1), Communication(500'000, 1, 1));
  EXPECT_EQ(run.result.end_ps, ready + sum);
  EXPECT_NE(Compute(3'000'000, 0, 0), Compute(3'000'000, 1, 0));
}

TEST(Jitter, MatchedComputeTakesTheSlowestMembersTime) {
  plan::Program program = EmptyProgram({.tp = 4});
  RoleSketch sketch(program);
  sketch.Compute(1'000'000, {.matched_over = plan::kTp});
  sketch.Give({0, 1, 2, 3});
  std::int64_t slowest = 0;
  for (int rank = 0; rank < 4; ++rank) slowest = std::max(slowest, Compute(1'000'000, rank, 0));
  EXPECT_EQ(RunWith(program, JitterOf(kDeviation, 0)).result.end_ps, slowest);
  EXPECT_EQ(RunWith(program, JitterOf(kDeviation, 0), true).result.end_ps, slowest);
}

TEST(Jitter, ATransferTakesTheSlowerSidesTime) {
  plan::Program program = EmptyProgram({.pp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    const auto value = sketch.NewValue();
    const bool sends = rank == 0;
    if (sends) sketch.Compute(1'000, {.produces = {value}});
    sketch.Exchange({{.sends = sends, .delta = sends ? 1 : -1, .value = value, .bytes = 800'000}},
                    sends ? Also{.consumes = {value}} : Also{.produces = {value}});
    sketch.Give({rank});
  }
  const TinyRun run = RunWith(program, JitterOf(0, kDeviation));
  // Op 1 of the sender, op 0 of the receiver; the first transfer of each.
  const std::int64_t message =
      std::max(Communication(800'000, 0, 1, 1), Communication(800'000, 1, 0, 1));
  EXPECT_EQ(run.result.end_ps, 1'000 + message);
}

TEST(Jitter, EveryStepHasItsOwn) {
  plan::Program program = EmptyProgram({}, 3);
  RoleSketch sketch(program);
  for (int step = 0; step < 3; ++step) {
    sketch.Compute(1'000'000, {.flags = plan::kEndsStep, .step = step});
  }
  sketch.Give({0});
  const TinyRun run = RunWith(program, JitterOf(kDeviation, 0));
  std::int64_t end = 0;
  for (int step = 0; step < 3; ++step) {
    end += Compute(1'000'000, 0, static_cast<std::uint32_t>(step), step);
    EXPECT_EQ(run.result.step_end_ps[static_cast<std::size_t>(step)], end);
  }
}

TEST(Jitter, AStallAddsItsTimeToEveryOpThatItHits) {
  plan::Program program = EmptyProgram({});
  RoleSketch sketch(program);
  sketch.Compute(100);
  sketch.Optimizer(30);
  sketch.Copy(5, plan::CopyDirection::kToHost);
  sketch.Give({0});
  topology::Jitter jitter;
  jitter.compute.stall = {.probability = 1, .time = base::Seconds(1e-9)};
  const TinyRun run = RunWith(program, jitter);
  EXPECT_EQ(run.result.times[0].end_ps, (std::vector<std::int64_t>{1'100, 2'130, 5}));
}

}  // namespace
}  // namespace isthmus::sim
