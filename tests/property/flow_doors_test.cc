// Which NICs collectives leave nodes by, dead ones among them, and how many bytes each carries.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/scenario.h"
#include "sim/cost/nccl_model.h"
#include "sim/network/flow_network.h"
#include "tests/support/max_min_solver.h"
#include "tests/support/random_cluster.h"
#include "topology/presets.h"

namespace isthmus {
namespace {

using base::DeviceId;
using plan::CollectiveKind;
using topology::FaultyPart;

constexpr std::int64_t kMs = 1'000'000'000;

std::vector<DeviceId> Gpus(int first, int count, int stride = 1) {
  std::vector<DeviceId> gpus;
  for (int number = 0; number < count; ++number) gpus.emplace_back(first + number * stride);
  return gpus;
}

/// Shares that NICs send to their leaf switches, by NVLink domain and NIC.
std::map<int, std::map<DeviceId, double>> SentByNics(const topology::Cluster& cluster,
                                                     const sim::Traffic& traffic,
                                                     std::uint32_t shape) {
  std::map<DeviceId, int> domain_of_nic;
  for (DeviceId gpu{0}; gpu.value() < cluster.num_gpus(); ++gpu)
    if (const auto nic = cluster.NicOf(gpu)) domain_of_nic[*nic] = cluster.NvlinkDomainOf(gpu);
  std::map<int, std::map<DeviceId, double>> sent;
  for (const sim::TrafficPart& part : traffic.shapes[shape].parts) {
    for (const std::uint32_t number : traffic.paths[part.path].links) {
      const topology::Link& link = traffic.links[number].link;
      if (link.kind != topology::LinkKind::kNic || !domain_of_nic.contains(link.from)) continue;
      sent[domain_of_nic.at(link.from)][link.from] += part.share;
    }
  }
  return sent;
}

double Sum(const std::map<DeviceId, double>& shares) {
  double sum = 0;
  for (const auto& [nic, share] : shares) sum += share;
  return sum;
}

TEST(FlowDoors, ALostNicLeavesItsBytesToTheOthers) {
  // An all-gather of S over 16 GPUs of two nodes: 15/16 S leave each node over 8 NICs, or over the
  // 7 that are left. 15/16 · 56e9 B over 7 NICs of 50e9 B/s: 150 ms; NVLink is done earlier.
  topology::ClusterSpec spec = topology::H100Dgx(2);
  for (const bool is_lost : {false, true}) {
    if (is_lost) spec.link_faults = {{FaultyPart::kNic, base::NodeId(0), 2, 0}};
    const topology::Cluster cluster(spec);
    sim::TrafficMap map(cluster);
    const std::uint32_t shape = map.Collective(CollectiveKind::kAllGather, Gpus(0, 16));
    const sim::Traffic traffic = std::move(map).Settled();
    const auto sent = SentByNics(cluster, traffic, shape);
    ASSERT_EQ(sent.size(), 2U);
    for (const auto& [node, shares] : sent) {
      EXPECT_EQ(shares.size(), is_lost ? 7U : 8U);
      EXPECT_NEAR(Sum(shares), 15.0 / 16, 1e-12);
      EXPECT_NEAR(shares.begin()->second, 15.0 / 16 / (is_lost ? 7 : 8), 1e-12);
    }
    const sim::FlowNetwork network(traffic, nullptr);
    EXPECT_NEAR(static_cast<double>(network.WirePs(shape, is_lost ? 56e9 : 64e9)), 150.0 * kMs, 2);
    // The same NICs as the closed form counts.
    std::vector<base::Rank> ranks;
    for (int rank = 0; rank < 16; ++rank) ranks.emplace_back(rank);
    EXPECT_EQ(cluster.Locality(ranks).min_nics_per_node, is_lost ? 7 : 8);
  }
}

TEST(FlowDoors, ANeighboursNicCarriesTheBytesOfTwoGroups) {
  // Eight all-reduces of 50 MB over two nodes, each on a rail of its own: 1 ms. With NIC 2 of node
  // 0 lost, the group of rail 2 takes another's, which then carries twice: 2 ms. There and back are
  // not over the same neighbour, so it slows two other groups.
  topology::ClusterSpec spec = topology::H100Dgx(2);
  for (const bool is_lost : {false, true}) {
    if (is_lost) spec.link_faults = {{FaultyPart::kNic, base::NodeId(0), 2, 0}};
    const topology::Cluster cluster(spec);
    sim::TrafficMap map(cluster);
    std::vector<std::uint32_t> shapes;
    for (int rail = 0; rail < 8; ++rail)
      shapes.push_back(map.Collective(CollectiveKind::kAllReduce, Gpus(rail, 2, 8)));
    const sim::Traffic traffic = std::move(map).Settled();
    sim::FlowNetwork network(traffic, [] { return std::make_unique<tests::MaxMinSolver>(); });
    std::map<DeviceId, double> sent;  // by node 0
    for (const std::uint32_t shape : shapes) {
      network.Start(0, 0, shape, 50e6, plan::Purpose::kGradientSync, {.a = shape});
      const auto by_node = SentByNics(cluster, traffic, shape);
      for (const auto& [nic, share] : by_node.at(0)) sent[nic] += share;
    }
    EXPECT_NEAR(Sum(sent), 8, 1e-12);
    const double most =
        std::ranges::max_element(sent, {}, [](const auto& nic) { return nic.second; })->second;
    EXPECT_NEAR(most, is_lost ? 2 : 1, 1e-12);
    std::map<std::int64_t, int> num_ended;  // by when
    while (network.NextEvent() != sim::FlowNetwork::kNever) {
      const std::int64_t now = network.NextEvent();
      const auto ended = network.Advance(now).size();
      if (ended > 0) num_ended[now] += static_cast<int>(ended);
    }
    const std::map<std::int64_t, int> expected =
        is_lost ? std::map<std::int64_t, int>{{kMs, 5}, {2 * kMs, 3}}
                : std::map<std::int64_t, int>{{kMs, 8}};
    EXPECT_EQ(num_ended, expected);
  }
}

// Bytes that leave a node, over the size, by docs/models/flow.md. Not of the last in a chain.
double LeavingNode(CollectiveKind kind, double ranks, double nodes) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (nodes - 1) / nodes;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return (ranks - 1) / ranks;
    default:
      return 1;
  }
}

TEST(FlowDoors, ConserveTheBytesOfRingsInFaultyFabrics) {
  constexpr std::array kKinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                 CollectiveKind::kReduceScatter, CollectiveKind::kRingExchange,
                                 CollectiveKind::kBroadcast};
  int num_checked = 0;
  int num_detours = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::RandomStream random(seed, "flow_doors");
    topology::ClusterSpec spec = tests::RandomCluster(random);
    if (random.Chance(0.3)) spec = tests::AsCustom(spec);
    tests::AddFaults(spec, random, 6, 0.5);
    // A dead NVLink leads traffic inside a node over NICs.
    std::erase_if(spec.link_faults,
                  [](const auto& fault) { return fault.part == FaultyPart::kNvlink; });
    const topology::Cluster cluster(spec);
    std::vector<DeviceId> gpus;
    for (int gpu = 0; gpu < cluster.num_gpus(); ++gpu)
      if (random.Chance(0.5)) gpus.emplace_back(gpu);
    std::map<int, int> ranks_of_node;
    for (const DeviceId gpu : gpus) ++ranks_of_node[cluster.NvlinkDomainOf(gpu)];
    if (ranks_of_node.size() < 2) continue;
    const CollectiveKind kind = random.Pick<CollectiveKind>(kKinds);
    sim::TrafficMap map(cluster);
    std::uint32_t shape = 0;
    try {
      shape = map.Collective(kind, gpus);
    } catch (const base::Error&) {  // cut off
      continue;
    }
    const sim::Traffic traffic = std::move(map).Settled();
    const double expected = LeavingNode(kind, static_cast<double>(gpus.size()),
                                        static_cast<double>(ranks_of_node.size()));
    auto sent = SentByNics(cluster, traffic, shape);
    const bool is_chain = kind == CollectiveKind::kBroadcast;
    EXPECT_EQ(sent.size(), ranks_of_node.size() - (is_chain ? 1 : 0));
    for (const auto& [node, shares] : sent) EXPECT_NEAR(Sum(shares), expected, 1e-9);
    ++num_checked;
    for (const DeviceId gpu : gpus)
      num_detours += cluster.UsedNicOf(gpu, false) != cluster.NicOf(gpu) ? 1 : 0;
  }
  EXPECT_GT(num_checked, 100);
  EXPECT_GT(num_detours, 50);
}

TEST(FlowDoors, NoClosedFormIsUnderItsWiresInAHealthyCluster) {
  // So that a shipped cluster takes what was measured, with the flows inside it.
  constexpr std::array kKinds = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                 CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                 CollectiveKind::kBroadcast,     CollectiveKind::kReduce,
                                 CollectiveKind::kRingExchange};
  for (const auto& [gpu, spec] :
       {std::pair{"h100-sxm", topology::H100Dgx(8)}, std::pair{"a100-sxm", topology::A100Dgx(8)}}) {
    const topology::Cluster cluster(spec);
    const sim::NcclModel nccl(scenarios::LoadProfile(gpu));
    for (const CollectiveKind kind : kKinds) {
      for (const auto& [count, stride] : {std::pair{2, 1},
                                          {4, 1},
                                          {8, 1},
                                          {16, 1},
                                          {64, 1},
                                          {2, 8},
                                          {8, 8},
                                          {16, 4},
                                          {8, 4},
                                          {32, 2}}) {
        const std::vector<DeviceId> gpus = Gpus(0, count, stride);
        std::vector<base::Rank> ranks;
        for (const DeviceId member : gpus) ranks.emplace_back(member.value());
        sim::TrafficMap map(cluster);
        const std::uint32_t shape = map.Collective(kind, gpus);
        const sim::Traffic traffic = std::move(map).Settled();
        for (const std::int64_t size : {1'000'000LL, 100'000'000LL, 10'000'000'000LL}) {
          const double closed = nccl.Time(kind, base::Bytes(size), cluster.Locality(ranks)).value();
          EXPECT_GE(closed * (1 + 1e-9),
                    traffic.shapes[shape].seconds_per_byte * static_cast<double>(size))
              << gpu << " " << plan::ToText(kind) << " of " << size << " over " << count << " by "
              << stride;
        }
      }
    }
  }
}

}  // namespace
}  // namespace isthmus
