// Traffic that shares links: cases by hand, conservation, and what must not change where nothing
// is shared.

#include "sim/network/flow_network.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/scenario.h"
#include "tests/support/max_min_solver.h"
#include "tests/support/random_job.h"
#include "tests/support/simulated_job.h"
#include "topology/presets.h"

namespace isthmus {
namespace {

using base::DeviceId;
using plan::CollectiveKind;
using plan::Purpose;

constexpr std::int64_t kMs = 1'000'000'000;

std::unique_ptr<sim::FlowSolver> MakeMaxMin() { return std::make_unique<tests::MaxMinSolver>(); }

bool HasSimGrid() {
  try {
    sim::LoadFlowSolver();
    return true;
  } catch (const base::IoError&) {
    return false;
  }
}

/// As if every flow were alone, however many share a link.
class IdleSolver : public sim::FlowSolver {
 public:
  void AddLink(double bytes_per_second) override { capacities_.push_back(bytes_per_second); }
  void Start(std::int64_t now_ps, std::uint32_t flow, std::span<const std::uint32_t> links,
             double bytes) override {
    double rate = capacities_[links.front()];
    for (const std::uint32_t link : links) rate = std::min(rate, capacities_[link]);
    ends_.emplace(now_ps + std::llround(bytes / rate * 1e12), flow);
  }
  std::optional<std::int64_t> NextEnd() override {
    if (ends_.empty()) return std::nullopt;
    return ends_.begin()->first;
  }
  void TakeEnded(std::int64_t now_ps, std::vector<std::uint32_t>& ended) override {
    while (!ends_.empty() && ends_.begin()->first <= now_ps) {
      ended.push_back(ends_.begin()->second);
      ends_.erase(ends_.begin());
    }
  }

 private:
  std::vector<double> capacities_;
  std::multimap<std::int64_t, std::uint32_t> ends_;
};

/// H100 nodes whose leaf groups have `nodes_per_leaf_group` nodes and spines for a part of them.
topology::Cluster Nodes(int num_nodes, int nodes_per_leaf_group = 32, double oversubscription = 1) {
  topology::ClusterSpec spec = topology::H100Dgx(num_nodes);
  spec.fabric.nodes_per_leaf_group.value = nodes_per_leaf_group;
  spec.fabric.oversubscription.value = oversubscription;
  return topology::Cluster(spec);
}

/// GPU 0 of each of some nodes.
std::vector<DeviceId> OnePerNode(int num_nodes) {
  std::vector<DeviceId> gpus;
  for (int node = 0; node < num_nodes; ++node) gpus.emplace_back(node * 8);
  return gpus;
}

/// Runs what was started until nothing is in flight; when the bundle with tag.a ended.
std::map<std::uint32_t, std::int64_t> Ends(sim::FlowNetwork& network) {
  std::map<std::uint32_t, std::int64_t> ends;
  while (network.NextEvent() != sim::FlowNetwork::kNever) {
    const std::int64_t now = network.NextEvent();
    for (const sim::FlowTag& tag : network.Advance(now)) ends[tag.a] = now;
  }
  return ends;
}

TEST(FlowNetwork, AMessageAloneTakesItsBytesOverItsBottleneck) {
  const topology::Cluster cluster = Nodes(2);
  sim::TrafficMap map(cluster);
  const std::uint32_t near = map.Message(DeviceId(0), DeviceId(1));
  const std::uint32_t far = map.Message(DeviceId(0), DeviceId(8));
  const sim::Traffic traffic = std::move(map).Settled();
  sim::FlowNetwork network(traffic, nullptr);
  // NVLink 450e9 B/s and a NIC; the delay comes first.
  network.Start(0, 7, near, 45e6, Purpose::kPipeline, {.a = 0});
  network.Start(0, 0, far, 5e6, Purpose::kPipeline, {.a = 1});
  const auto ends = Ends(network);
  EXPECT_EQ(ends.at(0), kMs / 10 + 7);
  EXPECT_EQ(ends.at(1), kMs / 10);
  EXPECT_EQ(network.num_shared_flows(), 0U);
}

TEST(FlowNetwork, TwoMessagesShareTheNicThatBothLeaveBy) {
  const topology::Cluster cluster = Nodes(3);
  sim::TrafficMap map(cluster);
  const std::uint32_t to_one = map.Message(DeviceId(0), DeviceId(8));
  const std::uint32_t to_other = map.Message(DeviceId(0), DeviceId(16));
  const sim::Traffic traffic = std::move(map).Settled();
  sim::FlowNetwork network(traffic, MakeMaxMin);
  // 50 MB alone take 1 ms. The first runs 0.5 ms alone, both then 0.5 / 0.5 = 1 ms at half the
  // rate, the second 0.5 ms alone.
  network.Start(0, 0, to_one, 50e6, Purpose::kPipeline, {.a = 0});
  network.Start(0, kMs / 2, to_other, 50e6, Purpose::kBoundary, {.a = 1});
  const auto ends = Ends(network);
  EXPECT_EQ(ends.at(0), kMs * 3 / 2);
  EXPECT_EQ(ends.at(1), kMs * 2);
  EXPECT_EQ(network.num_shared_flows(), 2U);
}

TEST(FlowNetwork, WhatOutlastsTheClockIsAnError) {
  // 6e9 B over a NIC of 1 kB/s take 6e6 s; the clock ends after 9.2e6.
  topology::ClusterSpec spec = topology::H100Dgx(3);
  spec.node_groups.front().nic_bandwidth.value = base::BytesPerSecond(1000);
  const topology::Cluster cluster(spec);
  sim::TrafficMap map(cluster);
  const std::uint32_t one = map.Message(DeviceId(0), DeviceId(8));
  const std::uint32_t other = map.Message(DeviceId(0), DeviceId(16));
  const sim::Traffic traffic = std::move(map).Settled();
  const auto run = [&](auto make_solver, double bytes, std::int64_t delay_ps, bool shares) {
    sim::FlowNetwork network(traffic, make_solver);
    network.Start(0, delay_ps, one, bytes, Purpose::kPipeline, {});
    if (shares) network.Start(0, delay_ps, other, bytes, Purpose::kPipeline, {.a = 1});
    while (network.NextEvent() != sim::FlowNetwork::kNever) network.Advance(network.NextEvent());
  };
  constexpr std::int64_t kDelay = 6'000'000'000'000'000'000;
  EXPECT_NO_THROW(run(MakeMaxMin, 6e9, 0, false));
  EXPECT_THROW(run(MakeMaxMin, 6e9, kDelay, false), base::Error);
  EXPECT_THROW(run(MakeMaxMin, 12e9, 0, false), base::Error);
  if (!HasSimGrid()) return;
  EXPECT_NO_THROW(run(sim::LoadFlowSolver, 4e9, 0, true));
  EXPECT_THROW(run(sim::LoadFlowSolver, 6e9, 0, true), base::Error);  // 12e6 s for both
  EXPECT_THROW(run(sim::LoadFlowSolver, 2e15, 0, true), base::Error);
}

TEST(FlowNetwork, OppositeDirectionsDontMeet) {
  const topology::Cluster cluster = Nodes(2);
  sim::TrafficMap map(cluster);
  const std::uint32_t there = map.Message(DeviceId(0), DeviceId(8));
  const std::uint32_t back = map.Message(DeviceId(8), DeviceId(0));
  const sim::Traffic traffic = std::move(map).Settled();
  sim::FlowNetwork network(traffic, nullptr);
  network.Start(0, 0, there, 50e6, Purpose::kPipeline, {.a = 0});
  network.Start(0, 0, back, 50e6, Purpose::kPipeline, {.a = 1});
  for (const auto& [tag, end] : Ends(network)) EXPECT_EQ(end, kMs) << tag;
}

TEST(FlowNetwork, AThreefoldOversubscribedSpineTriplesWhatCrossesIt) {
  // Leaf groups of three nodes with one port of 50e9 B/s for three NICs: one third each.
  const topology::Cluster cluster = Nodes(6, 3, 3);
  sim::TrafficMap map(cluster);
  std::vector<std::uint32_t> across;
  for (int node = 0; node < 3; ++node)
    across.push_back(map.Message(DeviceId(node * 8), DeviceId((node + 3) * 8)));
  const sim::Traffic traffic = std::move(map).Settled();
  sim::FlowNetwork network(traffic, MakeMaxMin);
  for (const std::uint32_t shape : across)
    network.Start(0, 0, shape, 50e6, Purpose::kPipeline, {.a = shape});
  for (const auto& [shape, end] : Ends(network)) EXPECT_EQ(end, 3 * kMs) << shape;
}

TEST(FlowNetwork, AFullSpineIsNeverShort) {
  const topology::Cluster cluster = Nodes(6, 3, 1);
  sim::TrafficMap map(cluster);
  std::vector<std::uint32_t> across;
  for (int node = 0; node < 3; ++node)
    across.push_back(map.Message(DeviceId(node * 8), DeviceId((node + 3) * 8)));
  const sim::Traffic traffic = std::move(map).Settled();
  for (const sim::TrafficLink& link : traffic.links) {
    const bool is_uplink = link.link.kind == topology::LinkKind::kUplink;
    EXPECT_FALSE(is_uplink && link.may_be_short);
  }
  sim::FlowNetwork network(traffic, nullptr);
  for (const std::uint32_t shape : across)
    network.Start(0, 0, shape, 50e6, Purpose::kPipeline, {.a = shape});
  for (const auto& [shape, end] : Ends(network)) EXPECT_EQ(end, kMs) << shape;
}

TEST(FlowNetwork, ARingOf256RanksTakesWhatItsWireBytesTake) {
  constexpr int kRanks = 256;
  constexpr double kGib = 1073741824;
  const topology::Cluster cluster = Nodes(kRanks);
  sim::TrafficMap map(cluster);
  const std::uint32_t ring = map.Collective(CollectiveKind::kAllReduce, OnePerNode(kRanks));
  std::vector<std::uint32_t> edges;
  for (int rank = 0; rank < kRanks; ++rank)
    edges.push_back(map.Message(DeviceId(rank * 8), DeviceId((rank + 1) % kRanks * 8)));
  const sim::Traffic traffic = std::move(map).Settled();
  // 2·255/256·2^30 B at 50e9 B/s: 42.78 ms. As flows on the edges, which is a pipelined ring:
  sim::FlowNetwork pipelined(traffic, nullptr);
  pipelined.Start(0, 0, ring, kGib, Purpose::kGradientSync, {});
  const double ms = static_cast<double>(Ends(pipelined).at(0)) / kMs;
  EXPECT_GE(ms, 42.78);
  EXPECT_LE(ms, 44.1);
  // In 510 steps of a chunk of S/256 on every edge, in k parts that are under way together: never
  // less. All steps being alike, a few are run (where the plain solver stands in, fewer parts).
  constexpr int kSteps = 2 * (kRanks - 1);
  constexpr int kStepsRun = 3;
  for (const int parts : HasSimGrid() ? std::vector{1, 2, 4, 16} : std::vector{1, 2}) {
    sim::FlowNetwork steps(traffic, HasSimGrid() ? sim::LoadFlowSolver : MakeMaxMin);
    std::int64_t now = 0;
    for (int step = 0; step < kStepsRun; ++step) {
      for (int part = 0; part < parts; ++part)
        for (const std::uint32_t edge : edges)
          steps.Start(now, 0, edge, kGib / kRanks / parts, Purpose::kGradientSync, {});
      while (steps.NextEvent() != sim::FlowNetwork::kNever) {
        now = steps.NextEvent();
        steps.Advance(now);
      }
    }
    EXPECT_EQ(steps.num_shared_flows() > 0, parts > 1);
    const double all = static_cast<double>(now) / kMs * kSteps / kStepsRun;
    EXPECT_GE(all, 42.78) << parts;
    EXPECT_LE(all, 44.1) << parts;
  }
}

TEST(FlowNetwork, TwoCollectivesShareANic) {
  // Rings over GPU 0 of nodes 0, 1 and of nodes 0, 2: an all-gather of 100 MB puts half of it on
  // each edge, 1 ms alone. Both leave node 0 by one NIC and come back by it: 2 ms.
  const topology::Cluster cluster = Nodes(3);
  sim::TrafficMap map(cluster);
  const std::uint32_t one = map.Collective(CollectiveKind::kAllGather, {DeviceId(0), DeviceId(8)});
  const std::uint32_t two = map.Collective(CollectiveKind::kAllGather, {DeviceId(0), DeviceId(16)});
  const sim::Traffic traffic = std::move(map).Settled();
  sim::FlowNetwork network(traffic, MakeMaxMin);
  EXPECT_EQ(network.WirePs(one, 100e6), kMs);
  network.Start(0, 0, one, 100e6, Purpose::kParameterGather, {.a = 0});
  network.Start(0, 0, two, 100e6, Purpose::kParameterGather, {.a = 1});
  for (const auto& [tag, end] : Ends(network)) EXPECT_EQ(end, 2 * kMs) << tag;
}

TEST(FlowNetwork, ACopyAndAMessageShareTheGpusPcieLink) {
  // 64e9 B/s into the PCIe switch: a copy takes all of it, a message 50e9 behind its NIC. Together
  // 32e9 each: 64 MB of the copy 2 ms, 50 MB of the message 50/32 ms.
  const topology::Cluster cluster = Nodes(2);
  sim::TrafficMap map(cluster);
  const std::uint32_t copy = map.Copy(DeviceId(0), plan::CopyDirection::kToHost);
  const std::uint32_t message = map.Message(DeviceId(0), DeviceId(8));
  const sim::Traffic traffic = std::move(map).Settled();
  sim::FlowNetwork network(traffic, MakeMaxMin);
  network.Start(0, 0, copy, 96e6, Purpose::kOffload, {.a = 0});
  network.Start(0, 0, message, 50e6, Purpose::kPipeline, {.a = 1});
  const auto ends = Ends(network);
  EXPECT_EQ(ends.at(1), kMs * 50 / 32);
  // Of 96 MB 50 are over by then, 46 go on at 64e9.
  EXPECT_EQ(ends.at(0), kMs * 50 / 32 + kMs * 46 / 64);
}

TEST(FlowNetwork, AllToAllIsAVolumePerRank) {
  // 16 ranks on two nodes: of 16 MB each sends 7 to its node and 8 to the other over its own NIC:
  // 8 MB at 50e9 B/s are 160 µs; NVLink is over long before. Four flows a rank.
  const topology::Cluster cluster = Nodes(2);
  sim::TrafficMap map(cluster);
  std::vector<DeviceId> gpus;
  for (int gpu = 0; gpu < 16; ++gpu) gpus.emplace_back(gpu);
  const std::uint32_t shape = map.Collective(CollectiveKind::kAllToAll, gpus);
  const sim::Traffic traffic = std::move(map).Settled();
  EXPECT_EQ(traffic.shapes[shape].parts.size(), 64U);
  sim::FlowNetwork network(traffic, MakeMaxMin);
  network.Start(0, 0, shape, 16e6, Purpose::kBoundary, {});
  EXPECT_EQ(Ends(network).at(0), kMs * 16 / 100);
}

TEST(FlowNetwork, ConservesBytesAndKeepsToEveryLink) {
  base::RandomStream random(7, "traffic");
  for (int round = 0; round < 20; ++round) {
    const topology::Cluster cluster = Nodes(6, 3, 3);
    sim::TrafficMap map(cluster);
    struct Started {
      std::uint32_t shape;
      std::int64_t at_ps;
      double bytes;
    };
    std::vector<Started> started;
    for (int flow = 0; flow < 60; ++flow) {
      const auto from = DeviceId(static_cast<std::int32_t>(random.UniformInt(0, 47)));
      const auto to = DeviceId(static_cast<std::int32_t>(random.UniformInt(0, 47)));
      if (from == to) continue;
      const std::uint32_t shape = random.Chance(0.2)
                                      ? map.Collective(CollectiveKind::kReduceScatter, {from, to})
                                      : map.Message(from, to);
      started.push_back({shape, random.UniformInt(0, kMs),
                         static_cast<double>(random.UniformInt(1, 50'000'000))});
    }
    const sim::Traffic traffic = std::move(map).Settled();
    const auto run = [&](sim::FlowNetwork& network) {
      for (std::uint32_t index = 0; index < started.size(); ++index) {
        network.Start(0, started[index].at_ps, started[index].shape, started[index].bytes,
                      Purpose::kPipeline, {.a = index});
      }
      return Ends(network);
    };
    sim::FlowNetwork network(traffic, MakeMaxMin);
    const auto ends = run(network);
    ASSERT_EQ(ends.size(), started.size());
    std::vector<double> crossed(traffic.links.size(), 0);
    for (std::uint32_t index = 0; index < started.size(); ++index) {
      const sim::TrafficShape& shape = traffic.shapes[started[index].shape];
      // Nothing is faster than alone.
      EXPECT_GE(ends.at(index), started[index].at_ps +
                                    network.WirePs(started[index].shape, started[index].bytes) - 1);
      for (const sim::TrafficPart& part : shape.parts)
        for (const std::uint32_t link : traffic.paths[part.path].links)
          crossed[link] += part.share * started[index].bytes;
    }
    for (std::size_t link = 0; link < crossed.size(); ++link) {
      const sim::LinkAccount& account = network.accounts()[link];
      const double sum = std::accumulate(account.bytes.begin(), account.bytes.end(), 0.0);
      EXPECT_NEAR(sum, crossed[link], 1e-6 * crossed[link]);
      const double limit = traffic.links[link].link.bandwidth.value() *
                           static_cast<double>(account.busy_ps + 100) * 1e-12;
      EXPECT_LE(sum, limit * (1 + 1e-9));
    }
    // SimGrid gives the same, where it is installed.
    if (!HasSimGrid()) continue;
    sim::FlowNetwork real(traffic, sim::LoadFlowSolver);
    for (const auto& [index, end] : run(real))
      EXPECT_NEAR(static_cast<double>(end), static_cast<double>(ends.at(index)), 20.0) << index;
  }
}

/// Whether every message is timed by its own bytes: none leaves or comes with others of its op.
bool SendsOneAtATime(const sim::Lowered& lowered) {
  for (const sim::Variant& variant : lowered.variants)
    if (variant.posted_bytes != variant.transfer_bytes) return false;
  return true;
}

TEST(FlowNetwork, JobsTakeWhatClosedFormsSayWhereNothingIsShared) {
  const tests::SimulatedJobs jobs;
  int num_compared = 0;
  int num_unshared = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const plan::Job job = tests::RandomJob(seed, {.max_ranks = 32});
    SCOPED_TRACE(tests::Summary(job));
    const plan::Program program = plan::Build(job);
    topology::ClusterSpec spec = topology::H100Dgx(4);
    // What is stalled waits longer in front of its flows.
    if (seed % 3 == 0) {
      spec.jitter =
          topology::Jitter{.seed = seed,
                           .compute = {.deviation = 0.1},
                           .communication = {.stall = topology::TimeVariation::Stall{
                                                 .probability = 0.1, .time = base::Seconds(1e-3)}}};
    }
    const topology::Cluster cluster(spec);
    const tests::SimulatedJob closed = jobs.Simulate(program, cluster, false, false);
    const tests::SimulatedJob idle =
        jobs.SimulateFlows(program, cluster, false, [] { return std::make_unique<IdleSolver>(); });
    if (!SendsOneAtATime(closed.lowered)) continue;
    ++num_compared;
    ASSERT_EQ(tests::Difference(closed, idle), "");
    const tests::SimulatedJob real = jobs.SimulateFlows(program, cluster, false, MakeMaxMin);
    ASSERT_FALSE(real.result.deadlock);
    if (real.num_shared_flows > 0) continue;
    ++num_unshared;
    ASSERT_EQ(tests::Difference(closed, real), "");
  }
  EXPECT_GE(num_compared, 80);
  EXPECT_GE(num_unshared, 20);
}

TEST(FlowNetwork, ShippedScenariosTakeWhatClosedFormsSayWhereNothingIsShared) {
  const tests::SimulatedJobs jobs;
  int num_compared = 0;
  const std::filesystem::path root = std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios";
  for (const char* folder : {"examples", "paper/A2", "paper/A3", "paper/A4"}) {
    for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
      SCOPED_TRACE(entry.path().string());
      const scenarios::Scenario scenario = scenarios::LoadScenario(entry.path(), {});
      const plan::Program program = plan::Build(scenario.job);
      const topology::Cluster cluster(scenario.cluster);
      const tests::SimulatedJob closed = jobs.Simulate(program, cluster, true, false);
      if (!SendsOneAtATime(closed.lowered)) continue;
      ++num_compared;
      const tests::SimulatedJob idle =
          jobs.SimulateFlows(program, cluster, true, [] { return std::make_unique<IdleSolver>(); });
      ASSERT_FALSE(idle.result.deadlock);
      EXPECT_EQ(idle.result.step_end_ps, closed.result.step_end_ps);
    }
  }
  EXPECT_GE(num_compared, 40);
}

TEST(FlowNetwork, JobsAreTheSameTwiceAndWithSimGrid) {
  const tests::SimulatedJobs jobs;
  for (std::uint64_t seed = 200; seed < 230; ++seed) {
    const plan::Program program = plan::Build(tests::RandomJob(seed, {.min_ranks = 16}));
    const topology::Cluster cluster = Nodes(4);
    const tests::SimulatedJob one = jobs.SimulateFlows(program, cluster, false, MakeMaxMin);
    ASSERT_EQ(tests::Difference(one, jobs.SimulateFlows(program, cluster, false, MakeMaxMin)), "");
    if (!HasSimGrid()) continue;
    // SimGrid's rates differ in the last digits: a picosecond here and there.
    const tests::SimulatedJob real =
        jobs.SimulateFlows(program, cluster, false, sim::LoadFlowSolver);
    EXPECT_NEAR(static_cast<double>(real.result.end_ps), static_cast<double>(one.result.end_ps),
                1e-9 * static_cast<double>(one.result.end_ps));
  }
}

}  // namespace
}  // namespace isthmus
