// Programs end on hosts without lanes, which wait in place for what an op consumes: how real CPU
// ranks run them.

#include <cstdint>

#include <gtest/gtest.h>

#include "backend/fake/execute.h"
#include "plan/program/program.h"
#include "tests/support/random_job.h"
#include "tests/support/small_jobs.h"
#include "traces/recorder.h"

namespace isthmus::backend {
namespace {

void ExpectToEnd(const plan::Job& job) {
  const plan::Program program = plan::Build(job);
  traces::Recorder recorder;
  const Outcome outcome = Execute(program, {.in_order_host = true}, recorder);
  EXPECT_FALSE(outcome.deadlock) << tests::Summary(job) << "\n" << outcome.explanation;
}

void CheckJobs(std::uint64_t first_seed, const tests::RandomJobOptions& options) {
  constexpr std::uint64_t kJobs = 400;
  for (std::uint64_t seed = first_seed; seed < first_seed + kJobs; ++seed) {
    ExpectToEnd(tests::RandomJob(seed, options));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(InOrderHost, HomogeneousProgramsEnd) {
  CheckJobs(5'000, {.placement = plan::Placement::kHomogeneous, .max_ranks = 16, .max_steps = 1});
}

TEST(InOrderHost, ColocatedProgramsEnd) {
  CheckJobs(6'000, {.placement = plan::Placement::kColocated, .max_ranks = 16, .max_steps = 1});
}

TEST(InOrderHost, NonColocatedProgramsEnd) {
  CheckJobs(7'000, {.placement = plan::Placement::kNonColocated, .max_ranks = 16, .max_steps = 1});
}

// The mode is what it says: the join that deadlocks with lanes deadlocks without them.
TEST(InOrderHost, FindsADeadlock) {
  traces::Recorder recorder;
  const Outcome outcome =
      Execute(plan::Build(tests::DeadlockingJoin()), {.in_order_host = true}, recorder);
  EXPECT_TRUE(outcome.deadlock);
}

}  // namespace
}  // namespace isthmus::backend
