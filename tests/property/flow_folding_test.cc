// With flows folded equals unfolded, to the picosecond, on random jobs and fabrics.

#include <memory>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/max_min_solver.h"
#include "tests/support/random_job.h"
#include "tests/support/simulated_job.h"
#include "topology/presets.h"

namespace isthmus {
namespace {

constexpr int kNumJobs = 150;
constexpr int kMaxRanks = 72;

std::unique_ptr<sim::FlowSolver> MakeMaxMin() { return std::make_unique<tests::MaxMinSolver>(); }

/// Leaf groups of 1 to 4 nodes, spines that carry all or a part, sometimes drawn by hash, sometimes
/// with a link that is slow.
topology::ClusterSpec AnyFabric(base::RandomStream& random) {
  topology::ClusterSpec spec = topology::H100Dgx(kMaxRanks / 8);
  spec.fabric.nodes_per_leaf_group.value = static_cast<int>(random.UniformInt(1, 4));
  if (random.Chance(0.5))
    spec.fabric.oversubscription.value = static_cast<double>(random.UniformInt(2, 4));
  if (random.Chance(0.2)) {
    spec.fabric.num_spines.value = 4;
    spec.fabric.ecmp = topology::Ecmp{.seed = 7};
  }
  if (random.Chance(0.2)) {
    spec.link_faults.push_back(
        {.part = topology::FaultyPart::kNic,
         .node = base::NodeId(static_cast<std::int32_t>(random.UniformInt(0, 8))),
         .index = static_cast<int>(random.UniformInt(0, 7)),
         .bandwidth_factor = 0.5});
  }
  return spec;
}

TEST(FlowFolding, IsExactOnRandomJobs) {
  const tests::SimulatedJobs jobs;
  int num_folded = 0;
  int num_shared = 0;
  for (std::uint64_t seed = 0; seed < kNumJobs; ++seed) {
    base::RandomStream random(seed, "fabric");
    const plan::Job job =
        tests::RandomJob(seed, {.min_ranks = seed % 2 == 0 ? 2 : 32, .max_ranks = kMaxRanks});
    SCOPED_TRACE(tests::Summary(job));
    const plan::Program program = plan::Build(job);
    const topology::Cluster cluster(AnyFabric(random));
    const tests::SimulatedJob unfolded = jobs.SimulateFlows(program, cluster, false, MakeMaxMin);
    const tests::SimulatedJob folded = jobs.SimulateFlows(program, cluster, true, MakeMaxMin);
    ASSERT_EQ(tests::Difference(unfolded, folded), "") << seed;
    if (!folded.lowered.folded) continue;
    ++num_folded;
    if (folded.num_shared_flows > 0) ++num_shared;
    EXPECT_LE(folded.num_flows, unfolded.num_flows);
    if (folded.num_shared_flows == 0 || seed % 5 != 0) continue;
    try {
      sim::LoadFlowSolver();
    } catch (const base::IoError&) {
      continue;
    }
    ASSERT_EQ(tests::Difference(jobs.SimulateFlows(program, cluster, false, sim::LoadFlowSolver),
                                jobs.SimulateFlows(program, cluster, true, sim::LoadFlowSolver)),
              "")
        << seed;
  }
  RecordProperty("folded", num_folded);
  RecordProperty("shared", num_shared);
  EXPECT_GE(num_folded, 60);
  EXPECT_GE(num_shared, 15);
}

}  // namespace
}  // namespace isthmus
