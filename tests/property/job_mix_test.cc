// Jobs beside each other on one fabric: by hand, and random ones that must not notice each other.

#include "sim/engine/job_mix.h"

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/flows.h"
#include "tests/support/max_min_solver.h"
#include "tests/support/random_job.h"
#include "tests/support/simulated_job.h"
#include "tests/support/small_jobs.h"
#include "topology/presets.h"

namespace isthmus {
namespace {

std::unique_ptr<sim::FlowSolver> MakeMaxMin() { return std::make_unique<tests::MaxMinSolver>(); }

/// Two stages of one rank, one microbatch: an activation there, a gradient back, and nothing else
/// on the network. A stage has `layers` layers.
plan::Program TwoStages(int layers = 4) {
  plan::Module llm = tests::Llama("llm", 2 * layers, 1024, 2048, 8);
  llm.layout = plan::Layout{.pp = 2};
  plan::Job job = tests::SmallJob("two stages", plan::Placement::kHomogeneous, {std::move(llm)});
  job.workload = {.sequence_length = 2048, .global_batch = 1, .microbatch_size = 1};
  return plan::Build(job);
}

/// 2,048 tokens of 1,024 numbers of 2 bytes at 50e9 B/s, 20 ps a byte.
constexpr std::int64_t kMessagePs = 2048L * 1024 * 2 * 20;

/// Two leaf groups of two H100 nodes. A leaf's two NICs may use one NIC's bandwidth to the spines
/// with oversubscription 2.
topology::ClusterSpec Fabric(double oversubscription) {
  topology::ClusterSpec spec = topology::H100Dgx(4);
  spec.fabric.nodes_per_leaf_group.value = 2;
  spec.fabric.oversubscription.value = oversubscription;
  return spec;
}

topology::Cluster On(topology::ClusterSpec spec, const std::vector<int>& gpus) {
  for (const int gpu : gpus) spec.rank_devices.emplace_back(gpu);
  return topology::Cluster(std::move(spec));
}

class JobMix : public ::testing::Test {
 protected:
  std::int64_t EndAlone(const plan::Program& program, const topology::Cluster& cluster) const {
    return jobs_.SimulateFlows(program, cluster, false, MakeMaxMin).result.end_ps;
  }
  tests::SimulatedJobs jobs_;
};

TEST_F(JobMix, TwoJobsThatSendOverOneUplinkAtOnceTakeTwiceAsLongForIt) {
  const plan::Program program = TwoStages();
  // From leaf 0.0 to leaf 1.0 both: GPU 0 of nodes 0 and 2, and of nodes 1 and 3.
  const topology::Cluster first = On(Fabric(2), {0, 16});
  const topology::Cluster second = On(Fabric(2), {8, 24});
  const std::int64_t alone = EndAlone(program, first);
  // They do the same at the same times: the activation takes twice its time on the wire, so does
  // the gradient.
  const auto mix = jobs_.SimulateMix({{program, first}, {program, second}}, MakeMaxMin);
  EXPECT_EQ(mix.first.result.end_ps, alone + 2 * kMessagePs);
  EXPECT_EQ(mix.first.num_shared_flows, 4U);
  // With all of the NICs' bandwidth above the leaf nobody loses anything.
  const topology::Cluster wide_first = On(Fabric(1), {0, 16});
  const topology::Cluster wide_second = On(Fabric(1), {8, 24});
  const auto wide = jobs_.SimulateMix({{program, wide_first}, {program, wide_second}}, MakeMaxMin);
  EXPECT_EQ(wide.first.result.end_ps, alone);
  EXPECT_EQ(wide.first.num_shared_flows, 0U);
}

TEST_F(JobMix, ThreeJobsThroughTwoNicsWorthOfUplinkTakeOneAndAHalfTimes) {
  // Four nodes a leaf group, oversubscription 2: two NICs' bandwidth for three that send.
  topology::ClusterSpec spec = topology::H100Dgx(8);
  spec.fabric.nodes_per_leaf_group.value = 4;
  spec.fabric.oversubscription.value = 2;
  const plan::Program program = TwoStages();
  const std::vector<topology::Cluster> clusters = {On(spec, {0, 32}), On(spec, {8, 40}),
                                                   On(spec, {16, 48})};
  const std::int64_t alone = EndAlone(program, clusters[0]);
  const auto mix = jobs_.SimulateMix(
      {{program, clusters[0]}, {program, clusters[1]}, {program, clusters[2]}}, MakeMaxMin);
  // Two messages, each half as long again: 2 · ½.
  EXPECT_EQ(mix.first.result.end_ps, alone + kMessagePs);
}

TEST_F(JobMix, ANeighbourThatBeginsLaterTakesLess) {
  const plan::Program program = TwoStages();
  const topology::Cluster first = On(Fabric(2), {0, 16});
  const topology::Cluster second = On(Fabric(2), {8, 24});
  const std::int64_t alone = EndAlone(program, first);
  // A third of a message late: two thirds of the first's activation go at half the rate, which
  // takes 2/3 longer. By then the other has a third of its own left, alone. Its gradient is as late
  // as it was, compared with the first's: 1/3 + 1/3 (its loss) − 2/3 (the first's loss), so at
  // once: the first's gradient takes twice its time.
  const auto mix =
      jobs_.SimulateMix({{program, first}, {program, second, kMessagePs / 3}}, MakeMaxMin);
  const std::int64_t lost = mix.first.result.end_ps - alone;
  EXPECT_NEAR(static_cast<double>(lost), 4.0 / 3 * kMessagePs, 3);
  // Behind the first job's end it takes nothing.
  const auto late = jobs_.SimulateMix({{program, first}, {program, second, alone}}, MakeMaxMin);
  EXPECT_EQ(late.first.result.end_ps, alone);
  EXPECT_EQ(late.others.front().num_runs, 0);
}

TEST_F(JobMix, AShortNeighbourRunsAgainAndAgain) {
  const plan::Program lengthy = TwoStages(40);
  const plan::Program brief = TwoStages(2);
  const topology::Cluster first = On(Fabric(1), {0, 16});
  const topology::Cluster second = On(Fabric(1), {8, 24});
  const std::int64_t length = EndAlone(lengthy, first);
  const std::int64_t brief_length = EndAlone(brief, second);
  const auto mix = jobs_.SimulateMix({{lengthy, first}, {brief, second, 1000}}, MakeMaxMin);
  EXPECT_EQ(mix.first.result.end_ps, length);
  ASSERT_EQ(mix.others.size(), 1U);
  // As many as are over before the first job is, none of them slower than alone.
  EXPECT_EQ(mix.others[0].num_runs, (length - 1000 - 1) / brief_length);
  EXPECT_GE(mix.others[0].num_runs, 3);
  EXPECT_EQ(mix.others[0].length_ps, mix.others[0].num_runs * brief_length);
}

TEST_F(JobMix, JobsThatShareNothingDontNoticeEachOther) {
  int num_shared = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    base::RandomStream random(seed, "mix");
    // Each in leaf groups of its own: four nodes, then four more.
    topology::ClusterSpec spec = topology::H100Dgx(8);
    spec.fabric.nodes_per_leaf_group.value = static_cast<int>(random.UniformInt(1, 2) * 2);
    spec.fabric.oversubscription.value = static_cast<double>(random.UniformInt(1, 4));
    const plan::Job job = tests::RandomJob(seed, {.max_ranks = 32});
    const plan::Job other = tests::RandomJob(seed + 1000, {.max_ranks = 32});
    SCOPED_TRACE(tests::Summary(job) + " beside " + tests::Summary(other));
    const plan::Program program = plan::Build(job);
    const plan::Program neighbour = plan::Build(other);
    std::vector<int> gpus(static_cast<std::size_t>(neighbour.num_ranks));
    std::iota(gpus.begin(), gpus.end(), 32);
    const topology::Cluster here(spec);
    const topology::Cluster there = On(spec, gpus);
    const auto alone = jobs_.SimulateFlows(program, here, false, MakeMaxMin);
    const auto mix = jobs_.SimulateMix({{program, here}, {neighbour, there}}, MakeMaxMin);
    if (alone.num_shared_flows > 0) ++num_shared;
    ASSERT_EQ(tests::Difference(alone, mix.first), "") << seed;
    if (!tests::HasFlows() || seed % 4 != 0) continue;
    // SimGrid's clock is in doubles: where flows of a job share links among themselves, its ends
    // may be rounded otherwise beside another's.
    const auto real_alone = jobs_.SimulateFlows(program, here, false, sim::LoadFlowSolver);
    const auto real =
        jobs_.SimulateMix({{program, here}, {neighbour, there}}, sim::LoadFlowSolver).first;
    if (alone.num_shared_flows == 0) {
      ASSERT_EQ(tests::Difference(real_alone, real), "") << seed;
    }
    EXPECT_NEAR(static_cast<double>(real.result.end_ps),
                static_cast<double>(real_alone.result.end_ps), 100)
        << seed;
  }
  EXPECT_GE(num_shared, 10);
}

TEST_F(JobMix, BytesAreThoseOfEachJobAloneAndTwiceTheSame) {
  for (std::uint64_t seed = 100; seed < 115; ++seed) {
    const plan::Program program = plan::Build(tests::RandomJob(seed, {.max_ranks = 16}));
    const plan::Program neighbour = plan::Build(tests::RandomJob(seed + 50, {.max_ranks = 16}));
    // Node by node in turns.
    std::vector<int> ours;
    std::vector<int> theirs;
    for (int rank = 0; rank < 16; ++rank) {
      ours.push_back(rank / 8 * 16 + rank % 8);
      theirs.push_back(rank / 8 * 16 + 8 + rank % 8);
    }
    const topology::Cluster here = On(Fabric(4), ours);
    const topology::Cluster there = On(Fabric(4), theirs);
    const auto sums = [](const tests::SimulatedMix& mix) {
      std::pair<double, double> sum;
      for (const sim::LinkTraffic& link : mix.links) {
        sum.first += link.account.Sum() - link.account.other_bytes;
        sum.second += link.account.other_bytes;
      }
      return sum;
    };
    const auto [bytes, nothing] = sums(jobs_.SimulateMix({{program, here}}, MakeMaxMin));
    const auto [of_a_run, none] = sums(jobs_.SimulateMix({{neighbour, there}}, MakeMaxMin));
    EXPECT_EQ(nothing + none, 0);
    const auto mix = jobs_.SimulateMix({{program, here}, {neighbour, there}}, MakeMaxMin);
    ASSERT_FALSE(mix.first.result.deadlock);
    const auto [own, others] = sums(mix);
    EXPECT_NEAR(own, bytes, 1e-9 * bytes) << seed;
    // Of whole runs all bytes, of the last one some.
    const auto runs = static_cast<double>(mix.others[0].num_runs);
    EXPECT_GE(others, runs * of_a_run * (1 - 1e-9)) << seed;
    EXPECT_LE(others, (runs + 1) * of_a_run * (1 + 1e-9)) << seed;
    const auto again = jobs_.SimulateMix({{program, here}, {neighbour, there}}, MakeMaxMin);
    EXPECT_EQ(tests::Difference(mix.first, again.first), "") << seed;
    EXPECT_EQ(mix.others[0].length_ps, again.others[0].length_ps);
  }
}

}  // namespace
}  // namespace isthmus
