#include <cctype>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/fake/execute.h"
#include "plan/program/validate.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "tests/support/random_job.h"
#include "tests/support/small_jobs.h"
#include "tests/twin/twin_check.h"
#include "traces/recorder.h"

// One program through sim and through the fake backend: only times may differ.
namespace isthmus::tests {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kMostRanks = 16;

const topology::Cluster& TwoNodes() {
  static const topology::Cluster cluster(scenarios::LoadCluster("h100-dgx", 2));
  return cluster;
}

const profiles::Profile& H100() {
  static const profiles::Profile profile = scenarios::LoadProfile("h100-sxm");
  return profile;
}

class SmallJobTwin : public testing::TestWithParam<plan::Job> {};

TEST_P(SmallJobTwin, AgreesOnOpsBytesAndMembers) {
  const plan::Program program = plan::Build(GetParam());
  ASSERT_THAT(plan::Validate(program).problems, IsEmpty());
  EXPECT_THAT(CheckTwins(program, TwoNodes(), H100()), IsEmpty());
}

/// Failures then print the job's name instead of its bytes.
std::string NameOf(const testing::TestParamInfo<plan::Job>& info) {
  std::string name;
  for (const char letter : info.param.name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      name += letter;
    } else if (name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Jobs, SmallJobTwin, testing::ValuesIn(SmallJobs()), NameOf);

TEST(RandomJobTwin, AgreesOnOpsBytesAndMembers) {
  constexpr std::uint64_t kFirstSeed = 70'000;
  constexpr std::uint64_t kJobs = 90;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kJobs; ++seed) {
    const plan::Job job = RandomJob(seed, {.placement = std::nullopt, .max_ranks = kMostRanks});
    const plan::Program program = plan::Build(job);
    ASSERT_THAT(CheckTwins(program, TwoNodes(), H100()), IsEmpty())
        << "seed " << seed << ": " << Summary(job);
  }
}

// Samples with different numbers of images, text-only ones and whole microbatches of them.
TEST(UnevenSamplesTwin, AgreesOnOpsBytesAndMembers) {
  constexpr std::uint64_t kFirstSeed = 71'000;
  constexpr std::uint64_t kJobs = 60;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kJobs; ++seed) {
    const plan::Job job = RandomJob(seed, {.max_ranks = kMostRanks, .uneven_samples = true});
    const plan::Program program = plan::Build(job);
    ASSERT_THAT(CheckTwins(program, TwoNodes(), H100()), IsEmpty())
        << "seed " << seed << ": " << Summary(job);
  }
}

TEST(ShippedScenarioTwin, AgreesOnOpsBytesAndMembers) {
  const scenarios::SearchPaths search = scenarios::DefaultSearchPaths();
  int num_checked = 0;
  for (const std::string& name : scenarios::ShippedNames(scenarios::FileKind::kScenario, search)) {
    SCOPED_TRACE(name);
    const auto file = scenarios::FindShipped(scenarios::FileKind::kScenario, name, search);
    ASSERT_TRUE(file.has_value());
    const scenarios::Scenario scenario = scenarios::LoadScenario(file->path);
    if (scenario.job.num_ranks > kMostRanks) continue;
    const topology::Cluster cluster(scenario.cluster);
    const plan::Program program = plan::Build(scenario.job);
    EXPECT_THAT(CheckTwins(program, cluster, scenario.profile), IsEmpty());
    ++num_checked;
  }
  // The quickstart and the examples; papers' rows need more ranks.
  EXPECT_GE(num_checked, 6);
}

/// (rank, op, inner) of every event.
std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> WhatEnded(
    const traces::Trace& trace) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> ended;
  for (const traces::Event& event : trace.events) {
    ended.emplace(event.rank_class, event.op, event.inner);
  }
  return ended;
}

// Reference §6.3: by the code's rule the LLM's first stage waits for E2 to take a gradient's shape
// while E2 waits for it to take an activation. All three see it.
TEST(DeadlockTwin, IsFoundByValidatorSimAndFake) {
  const plan::Program program = plan::Build(DeadlockingJoin());

  EXPECT_THAT(plan::Validate(program).problems,
              testing::AllOf(Not(IsEmpty()), Each(HasSubstr("deadlock"))));

  traces::Recorder predicted;
  const sim::Outcome simulated =
      sim::Simulate(program, TwoNodes(), H100(), {.folding = sim::Folding::kOff}, {}, predicted);
  EXPECT_TRUE(simulated.deadlock);
  EXPECT_THAT(simulated.explanation, HasSubstr("deadlock"));

  traces::Recorder measured;
  const backend::Outcome executed = backend::Execute(program, {}, measured);
  EXPECT_TRUE(executed.deadlock);
  // Rank 2 is E2, rank 3 the LLM's first stage.
  EXPECT_THAT(executed.explanation, HasSubstr("rank 2 is in op"));
  EXPECT_THAT(executed.explanation, HasSubstr("rank 3 is in op"));
  EXPECT_THAT(executed.explanation, HasSubstr("waits for rank 3 to receive"));
  // Sim and fake got equally far: what can run doesn't depend on times.
  EXPECT_EQ(WhatEnded(measured.trace()), WhatEnded(predicted.trace()));
}

class NoDeadlockTwin : public testing::TestWithParam<plan::Job> {};

// Either of our two choices alone is enough: the other rule, or one message a call.
TEST_P(NoDeadlockTwin, EndsEverywhere) {
  const plan::Program program = plan::Build(GetParam());
  EXPECT_THAT(plan::Validate(program).problems, IsEmpty());
  EXPECT_THAT(CheckTwins(program, TwoNodes(), H100()), IsEmpty());
}

std::vector<plan::Job> SafeJoins() {
  plan::Job other_rule = DeadlockingJoin();
  other_rule.schedule.warmup_rule = plan::WarmupRule::kDistanceToSink;
  plan::Job one_message = DeadlockingJoin();
  one_message.schedule.protocol = plan::MessageProtocol::kSingle;
  return {other_rule, one_message};
}

INSTANTIATE_TEST_SUITE_P(Joins, NoDeadlockTwin, testing::ValuesIn(SafeJoins()));

}  // namespace
}  // namespace isthmus::tests
