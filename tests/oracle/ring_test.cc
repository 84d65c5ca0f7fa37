// The wire bytes of our closed forms against rings of flows with max-min sharing.

#include <vector>

#include <gtest/gtest.h>

#include "sim/cost/wire_model.h"
#include "tests/oracle/simgrid_run.h"

namespace isthmus {
namespace {

constexpr double kNvlink = 450e9;
constexpr double kNic = 50e9;
constexpr double kSize = 840e6;  // divisible by 2 … 8, so that chunks are whole bytes

topology::GroupLocality OneNode(int num_ranks) {
  topology::GroupLocality group;
  group.num_ranks = num_ranks;
  group.num_devices = num_ranks;
  group.num_nodes = 1;
  group.min_ranks_per_node = num_ranks;
  group.max_ranks_per_node = num_ranks;
  group.farthest = topology::PathKind::kNvlink;
  group.slowest_nvlink = base::BytesPerSecond(kNvlink);
  return group;
}

double ClosedForm(plan::CollectiveKind kind, const topology::GroupLocality& group) {
  return sim::WireTime(sim::WireBytesOf(kind, base::Bytes(static_cast<std::int64_t>(kSize)), group,
                                        sim::Reduction::kInGpus),
                       group)
      .value();
}

/// Every rank sends `bytes` to the next one.
std::vector<oracle::Flow> Ring(int num_ranks, double bytes) {
  std::vector<oracle::Flow> flows;
  for (int rank = 0; rank < num_ranks; ++rank)
    flows.push_back({rank, (rank + 1) % num_ranks, bytes});
  return flows;
}

TEST(RingOracle, AllReduceAsFlowsTakesTheClosedForm) {
  for (int n = 2; n <= 8; ++n) {
    const double flows = oracle::EndOfFlows(n, kNvlink, Ring(n, 2 * kSize * (n - 1) / n));
    EXPECT_NEAR(flows / ClosedForm(plan::CollectiveKind::kAllReduce, OneNode(n)), 1, 1e-6) << n;
  }
}

TEST(RingOracle, AllReduceInStepsTakesTheSame) {
  for (int n = 2; n <= 8; ++n) {
    // n - 1 steps that reduce and n - 1 that gather, a chunk of S/n each.
    const std::vector<std::vector<oracle::Flow>> steps(static_cast<std::size_t>(2 * (n - 1)),
                                                       Ring(n, kSize / n));
    const double stepwise = oracle::EndOfPhases(n, kNvlink, steps);
    EXPECT_NEAR(stepwise / ClosedForm(plan::CollectiveKind::kAllReduce, OneNode(n)), 1, 1e-6) << n;
  }
}

TEST(RingOracle, GatherAndScatterTakeHalfOfIt) {
  for (int n = 2; n <= 8; ++n) {
    const double flows = oracle::EndOfFlows(n, kNvlink, Ring(n, kSize * (n - 1) / n));
    for (const auto kind :
         {plan::CollectiveKind::kAllGather, plan::CollectiveKind::kReduceScatter}) {
      EXPECT_NEAR(flows / ClosedForm(kind, OneNode(n)), 1, 1e-6) << n;
    }
  }
}

TEST(RingOracle, AllToAllIsLimitedByWhatARankSends) {
  for (int n = 2; n <= 8; ++n) {
    std::vector<oracle::Flow> flows;
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from != to) flows.push_back({from, to, kSize / n});
      }
    }
    const double time = oracle::EndOfFlows(n, kNvlink, flows);
    EXPECT_NEAR(time / ClosedForm(plan::CollectiveKind::kAllToAll, OneNode(n)), 1, 1e-6) << n;
  }
}

TEST(RingOracle, AllReduceAcrossNodesIsLimitedByTheirNics) {
  constexpr int kRails = 8;
  for (int nodes = 2; nodes <= 6; ++nodes) {
    topology::GroupLocality group = OneNode(kRails);
    group.num_ranks = group.num_devices = nodes * kRails;
    group.num_nodes = nodes;
    group.num_leaf_groups = 1;
    group.num_rails = group.min_nics_per_node = kRails;
    group.farthest = topology::PathKind::kRail;
    group.slowest_nic = base::BytesPerSecond(kNic);
    // Each rail carries its share between the nodes in a ring of its own; what happens inside a
    // node is faster and runs beside it. One rail stands for all.
    const double rail =
        oracle::EndOfFlows(nodes, kNic, Ring(nodes, 2 * kSize / kRails * (nodes - 1) / nodes));
    EXPECT_NEAR(rail / ClosedForm(plan::CollectiveKind::kAllReduce, group), 1, 1e-6) << nodes;
  }
}

}  // namespace
}  // namespace isthmus
