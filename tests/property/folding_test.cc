// Folded equals unfolded, fused equals expanded: to the picosecond, on random jobs.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/program/program.h"
#include "tests/support/random_job.h"
#include "tests/support/simulated_job.h"
#include "topology/cluster.h"
#include "topology/presets.h"

namespace isthmus {
namespace {

using Models = tests::SimulatedJobs;
using Outcome = tests::SimulatedJob;
using tests::Difference;

constexpr int kNumJobs = 510;
constexpr int kMaxRanks = 72;

/// Some nodes are full, some are filled by half only, so that equal groups lie differently.
topology::ClusterSpec HalfFilledNodes(base::RandomStream& random) {
  topology::ClusterSpec spec = topology::H100Dgx(kMaxRanks / 4);
  const bool all_full = random.Chance(0.3);
  for (int node = 0; static_cast<int>(spec.rank_devices.size()) < kMaxRanks; ++node) {
    const int ranks = all_full || random.Chance(0.5) ? 8 : 4;
    for (int gpu = 0; gpu < ranks; ++gpu) spec.rank_devices.emplace_back(node * 8 + gpu);
  }
  spec.rank_devices.resize(kMaxRanks);
  return spec;
}

/// Whether ranks of one role differ in their sizes.
bool HasPerRankData(const plan::Program& program) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> kinds;
  std::set<std::uint32_t> roles;
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    kinds.emplace(program.role_of_rank[rank], program.table_of_rank[rank]);
    roles.insert(program.role_of_rank[rank]);
  }
  return kinds.size() > roles.size();
}

TEST(Folding, IsExactAndWorthwhileOnRandomJobs) {
  const Models models;
  int many_ranks = 0;
  int halved = 0;
  int uneven = 0;
  int slow = 0;
  for (int seed = 0; seed < kNumJobs; ++seed) {
    base::RandomStream random(static_cast<std::uint64_t>(seed), "cluster");
    const int min_ranks = seed % 2 == 0 ? 2 : 32;
    const bool uneven_samples = seed % 7 == 6;
    const plan::Job job = tests::RandomJob(
        static_cast<std::uint64_t>(seed),
        {.min_ranks = min_ranks, .max_ranks = kMaxRanks, .uneven_samples = uneven_samples});
    SCOPED_TRACE(tests::Summary(job));
    const plan::Program program = plan::Build(job);
    topology::ClusterSpec spec = HalfFilledNodes(random);
    const bool has_slow_gpu = seed % 5 == 4;
    if (has_slow_gpu) {
      const auto rank = static_cast<std::size_t>(random.UniformInt(0, program.num_ranks - 1));
      spec.slow_gpus.push_back({.device = spec.rank_devices[rank], .speed_factor = 0.83});
    }
    const topology::Cluster cluster(std::move(spec));
    const Outcome unfolded = models.Simulate(program, cluster, false, false);
    const Outcome folded = models.Simulate(program, cluster, true, false);
    ASSERT_EQ(unfolded.lowered.classes.size(), static_cast<std::size_t>(program.num_ranks));
    ASSERT_EQ(Difference(unfolded, folded), "");
    ASSERT_EQ(Difference(unfolded, models.Simulate(program, cluster, true, true)), "");
    if (seed % 4 == 0) {
      ASSERT_EQ(Difference(unfolded, models.Simulate(program, cluster, false, true)), "");
    }
    for (const plan::Module& module : job.modules) {
      if (module.layout && !module.layout->stage_layers.empty()) {
        ++uneven;
        break;
      }
    }
    if (has_slow_gpu) {
      ++slow;
      continue;
    }
    if (program.num_ranks < 32 || uneven_samples || HasPerRankData(program)) continue;
    ++many_ranks;
    if (folded.lowered.classes.size() * 2 < static_cast<std::size_t>(program.num_ranks)) ++halved;
  }
  RecordProperty("many_ranks", many_ranks);
  RecordProperty("halved", halved);
  EXPECT_GE(uneven, 30);
  EXPECT_GE(slow, 100);
  EXPECT_GE(many_ranks, 100);
  EXPECT_GE(halved, many_ranks * 8 / 10) << "of " << many_ranks;
}

TEST(Folding, ASlowGpuUnfoldsWhatItTouches) {
  const Models models;
  plan::Job job = tests::RandomJob(1, {.placement = plan::Placement::kHomogeneous});
  // Eight copies of one rank each: nothing but data parallelism.
  plan::Module llm = job.modules.back();
  llm.layout = plan::Layout{.dp = 8};
  llm.settings = {};
  job = {.name = "copies",
         .modules = {llm},
         .workload = {.sequence_length = 1536, .global_batch = 16, .microbatch_size = 1},
         .num_ranks = 8};
  const plan::Program program = plan::Build(job);
  topology::ClusterSpec spec = topology::H100Dgx(1);
  const Outcome sound = models.Simulate(program, topology::Cluster(spec), true, false);
  EXPECT_EQ(sound.lowered.classes.size(), 1U);
  spec.slow_gpus.push_back({.device = base::DeviceId(3), .speed_factor = 0.5});
  const topology::Cluster cluster(spec);
  const Outcome folded = models.Simulate(program, cluster, true, false);
  // Rank 3 by itself, the seven others together.
  ASSERT_EQ(folded.lowered.classes.size(), 2U);
  EXPECT_EQ(folded.lowered.classes[1].members, std::vector<base::Rank>{base::Rank(3)});
  EXPECT_EQ(Difference(models.Simulate(program, cluster, false, false), folded), "");
  EXPECT_GT(folded.result.end_ps, sound.result.end_ps);
}

TEST(WorkCosts, SharesAndPiecesSumToTheWhole) {
  const Models models;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const plan::Program program = plan::Build(tests::RandomJob(seed));
    const topology::Cluster cluster(topology::H100Dgx(4));
    const Outcome run = models.Simulate(program, cluster, true, false);
    ASSERT_FALSE(run.lowered.work_costs.empty());
    for (const auto& work : run.lowered.work_costs) {
      std::int64_t shares = 0;
      for (const traces::InnerShare& share : work->shares) shares += share.duration_ps;
      std::int64_t pieces = 0;
      for (const std::uint32_t piece : work->order) {
        const sim::PieceCost& cost = work->pieces[piece];
        pieces += cost.duration_ps;
        // Kernels and collective of a piece lie within it.
        EXPECT_LE(cost.compute_ps, cost.duration_ps);
        EXPECT_LE(cost.communication_ps, cost.duration_ps);
      }
      EXPECT_EQ(shares, work->total_ps);
      EXPECT_EQ(pieces, work->total_ps);
    }
  }
}

}  // namespace
}  // namespace isthmus
