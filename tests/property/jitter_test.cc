// Random jobs whose ops vary at random.

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "plan/program/program.h"
#include "tests/support/random_job.h"
#include "tests/support/simulated_job.h"
#include "topology/cluster.h"
#include "topology/presets.h"

namespace isthmus {
namespace {

using tests::Difference;
using tests::SimulatedJob;
using enum topology::TimeVariation::Distribution;

constexpr int kNumJobs = 60;

topology::Cluster ClusterWith(const topology::Jitter& jitter, bool slow_gpu = false) {
  topology::ClusterSpec spec = topology::H100Dgx(4);
  spec.jitter = jitter;
  if (slow_gpu) spec.slow_gpus = {{base::DeviceId(1), 0.8}};
  return topology::Cluster(spec);
}

TEST(Jitter, OfNoDeviationIsNone) {
  const tests::SimulatedJobs jobs;
  const topology::Cluster steady(topology::H100Dgx(4));
  for (std::uint64_t seed = 0; seed < kNumJobs; ++seed) {
    const plan::Job job = tests::RandomJob(seed, {.max_ranks = 32});
    SCOPED_TRACE(tests::Summary(job));
    const plan::Program program = plan::Build(job);
    const SimulatedJob without = jobs.Simulate(program, steady, true, false);
    const SimulatedJob with =
        jobs.Simulate(program, ClusterWith({.seed = seed}), false, seed % 2 == 0);
    EXPECT_EQ(Difference(with, without), "");
  }
}

TEST(Jitter, ExpandedEndsWhereFusedDoes) {
  const tests::SimulatedJobs jobs;
  for (std::uint64_t seed = 0; seed < kNumJobs; ++seed) {
    const plan::Job job = tests::RandomJob(seed, {.max_ranks = 32});
    SCOPED_TRACE(tests::Summary(job));
    const plan::Program program = plan::Build(job);
    topology::Jitter jitter{.seed = seed,
                            .compute = {.deviation = 0.1},
                            .communication = {.distribution = kExponential, .deviation = 0.3}};
    jitter.compute.stall = {.probability = 0.05, .time = base::Seconds(1e-3)};
    const topology::Cluster cluster = ClusterWith(jitter, seed % 3 == 0);
    const SimulatedJob fused = jobs.Simulate(program, cluster, false, false);
    EXPECT_EQ(Difference(fused, jobs.Simulate(program, cluster, false, true)), "");
    // The same twice, another time with another seed.
    EXPECT_EQ(Difference(fused, jobs.Simulate(program, cluster, false, false)), "");
    jitter.seed += 1;
    const topology::Cluster other = ClusterWith(jitter, seed % 3 == 0);
    EXPECT_NE(jobs.Simulate(program, other, false, false).result.end_ps, fused.result.end_ps);
  }
}

TEST(Jitter, IsNeverFasterThanItsLeastFactor) {
  // No factor is under 0.7, and no wait gets longer by ops getting shorter: a step in which every
  // op takes 0.7 of its time takes 0.7 of the time, but for what doesn't vary.
  constexpr double kLeast = 0.7;
  const tests::SimulatedJobs jobs;
  const topology::Cluster steady(topology::H100Dgx(4));
  for (std::uint64_t seed = 0; seed < kNumJobs; ++seed) {
    const plan::Job job = tests::RandomJob(seed, {.max_ranks = 32});
    SCOPED_TRACE(tests::Summary(job));
    const plan::Program program = plan::Build(job);
    const topology::TimeVariation variation{.distribution = kExponential, .deviation = 1 - kLeast};
    const topology::Cluster cluster =
        ClusterWith({.seed = seed, .compute = variation, .communication = variation});
    const auto least =
        kLeast * static_cast<double>(jobs.Simulate(program, steady, true, false).result.end_ps);
    const auto end =
        static_cast<double>(jobs.Simulate(program, cluster, false, false).result.end_ps);
    // Half a picosecond for each of the ops on a path.
    EXPECT_GE(end, least - 1e5);
  }
}

}  // namespace
}  // namespace isthmus
