// Random jobs of all placements build, and their programs are proved by the validator.

#include "plan/program/program.h"

#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "plan/program/print.h"
#include "plan/program/validate.h"
#include "tests/support/random_job.h"

namespace isthmus::plan {
namespace {

std::string Problems(const Program& program) {
  std::string text;
  for (const std::string& problem : Validate(program).problems) text += problem + "\n";
  return text;
}

void CheckJobs(std::uint64_t first_seed, int count, const tests::RandomJobOptions& options) {
  for (std::uint64_t seed = first_seed; seed < first_seed + static_cast<std::uint64_t>(count);
       ++seed) {
    const Job job = tests::RandomJob(seed, options);
    const Program program = Build(job);
    ASSERT_EQ(program.role_of_rank.size(), static_cast<std::size_t>(job.num_ranks));
    ASSERT_EQ(Problems(program), "") << tests::Summary(job);
  }
}

TEST(ProgramProperty, HomogeneousJobsAreValid) {
  CheckJobs(1'000, 150, {.placement = Placement::kHomogeneous});
}

TEST(ProgramProperty, ColocatedJobsAreValid) {
  CheckJobs(2'000, 150, {.placement = Placement::kColocated});
}

TEST(ProgramProperty, NonColocatedJobsAreValid) {
  CheckJobs(3'000, 150, {.placement = Placement::kNonColocated});
}

TEST(ProgramProperty, JobsOn72RanksAreValid) {
  CheckJobs(4'000, 60, {.min_ranks = 72, .max_ranks = 72});
}

TEST(ProgramProperty, JobsOfUnevenSamplesAreValid) {
  CheckJobs(5'000, 240, {.max_ranks = 24, .uneven_samples = true});
}

// The random jobs are not all alike: every placement, and most features in a tenth of them at
// least.
TEST(ProgramProperty, RandomJobsCoverWhatTheyPromise) {
  std::array<int, 3> placements{};
  int cp = 0;
  int uneven = 0;
  int interleaved = 0;
  int frozen = 0;
  int recompute = 0;
  int instances = 0;
  int other_order = 0;
  int three_modules = 0;
  constexpr int kJobs = 300;
  for (std::uint64_t seed = 0; seed < kJobs; ++seed) {
    const Job job = tests::RandomJob(seed);
    ++placements[static_cast<std::size_t>(job.placement)];
    three_modules += job.modules.size() == 3 ? 1 : 0;
    for (const Module& module : job.modules) {
      frozen += module.settings.frozen ? 1 : 0;
      recompute += module.settings.recompute == Recompute::kFull ? 1 : 0;
      instances += module.settings.optimizer_instances > 1 ? 1 : 0;
      if (!module.layout) continue;
      cp += module.layout->cp > 1 ? 1 : 0;
      uneven += module.layout->stage_layers.empty() ? 0 : 1;
      interleaved += module.layout->vpp > 1 ? 1 : 0;
      other_order += module.layout->order == AxisOrder::kTpCpPpDp ? 1 : 0;
    }
  }
  for (const int jobs : placements) EXPECT_GT(jobs, kJobs / 5);
  for (const int modules :
       {cp, uneven, interleaved, frozen, recompute, other_order, three_modules}) {
    EXPECT_GT(modules, kJobs / 10);
  }
  EXPECT_GT(instances, kJobs / 20);
}

// Sizes and ops are functions of the job alone, and the fingerprint is of all that ranks do.
TEST(ProgramProperty, TwoBuildsHaveOneHash) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Job job = tests::RandomJob(seed);
    const Program one = Build(job);
    const Program other = Build(job);
    ASSERT_EQ(Hash(one), Hash(other)) << tests::Summary(job);
    ASSERT_EQ(PrintProgram(one) + PrintBoundaries(one),
              PrintProgram(other) + PrintBoundaries(other));
  }
}

TEST(ProgramProperty, OtherJobsHaveOtherHashes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Job job = tests::RandomJob(seed, {.absent_backward = false});
    const std::uint64_t hash = Hash(Build(job));
    Job more_samples = job;
    more_samples.workload.global_batch *= 2;
    EXPECT_NE(Hash(Build(more_samples)), hash) << tests::Summary(job);
    Job longer = job;
    longer.workload.sequence_length *= 2;
    EXPECT_NE(Hash(Build(longer)), hash) << tests::Summary(job);
    Job unclipped = job;
    unclipped.optimizer.clip_gradients = !job.optimizer.clip_gradients;
    EXPECT_NE(Hash(Build(unclipped)), hash) << tests::Summary(job);
    Job two_steps = job;
    ++two_steps.num_steps;
    EXPECT_NE(Hash(Build(two_steps)), hash) << tests::Summary(job);
    Job more_precise = job;
    Module& decoder = more_precise.modules[static_cast<std::size_t>(job.decoder())];
    decoder.settings.precision = DType::kFp32;
    EXPECT_NE(Hash(Build(more_precise)), hash) << tests::Summary(job);
  }
}

// Printed forms exist for every rank and begin with what it does first.
TEST(ProgramProperty, EveryRankCanBePrinted) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Program program = Build(tests::RandomJob(seed));
    for (int rank = 0; rank < program.num_ranks; ++rank) {
      const Role& role = program.role(base::Rank{rank});
      const std::string text = PrintRank(program, base::Rank{rank});
      EXPECT_NE(text.find(role.name), std::string::npos);
      EXPECT_NE(text.find(Describe(program, role, role.ops.front())), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace isthmus::plan
