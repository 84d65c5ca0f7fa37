// What flows cost that are slower than their closed form says: time, never bytes.
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "sim/cost/jitter_model.h"
#include "sim/cost/nccl_model.h"
#include "sim/cost/wire_model.h"
#include "sim/engine/job_mix.h"
#include "sim/engine/program_traffic.h"
#include "sim/network/flow_network.h"
#include "tests/support/max_min_solver.h"
#include "tests/support/random_cluster.h"
#include "tests/unit/sim/cost_profiles.h"
#include "tests/unit/sim/tiny_program.h"
#include "topology/presets.h"

namespace isthmus::sim {
namespace {

using topology::ClusterSpec;
using topology::FaultyPart;

constexpr std::int64_t kMs = 1'000'000'000;
constexpr std::int64_t kGigabyte = 1'000'000'000;

/// A step, and what it put on the links from NICs to leaf switches.
struct FlowRun {
  std::int64_t end_ps = 0;
  double nic_bytes = 0;
};

FlowRun RunFlows(const plan::Program& program, const ClusterSpec& spec,
                 const CollectiveModel& closed_forms = GivenNetwork()) {
  const topology::Cluster cluster(spec);
  const GivenCompute compute;
  const SegmentModel segments(RoundProfile(), compute, closed_forms);
  const Lowered lowered =
      Lower(program, cluster, {.segments = &segments, .collectives = &closed_forms}, false, true);
  const Traffic& traffic = lowered.traffic->traffic();
  FlowNetwork network(traffic, [] { return std::make_unique<tests::MaxMinSolver>(); });
  EngineOptions options;
  std::optional<JitterModel> jitter;
  if (spec.jitter) options.jitter = &jitter.emplace(*spec.jitter);
  FlowRun run;
  run.end_ps = JobMix(network, {{&lowered, options, nullptr}}).Run().end_ps;
  for (std::size_t link = 0; link < traffic.links.size(); ++link) {
    const topology::Link& here = traffic.links[link].link;
    if (here.kind != topology::LinkKind::kNic || here.id.value() % 2 != 0) continue;  // ways up
    const auto& bytes = network.accounts()[link].bytes;
    run.nic_bytes += std::accumulate(bytes.begin(), bytes.end(), 0.0);
  }
  return run;
}

/// Ranks of data parallelism sum `bytes`; by GivenNetwork that takes a picosecond a byte.
plan::Program Sum(int num_ranks, std::int64_t bytes) {
  plan::Program program = EmptyProgram({.dp = num_ranks});
  RoleSketch sketch(program);
  sketch.AllReduce(bytes, plan::kDp);
  std::vector<int> ranks(static_cast<std::size_t>(num_ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  sketch.Give(ranks);
  return program;
}

/// Rank 0 sends `bytes` to rank 1.
plan::Program Send(std::int64_t bytes) {
  plan::Program program = EmptyProgram({.pp = 2});
  for (const bool sends : {true, false}) {
    RoleSketch sketch(program);
    const auto value = sketch.NewValue();
    if (sends) sketch.Compute(1, {.produces = {value}});
    sketch.Exchange({{.sends = sends, .delta = sends ? 1 : -1, .value = value, .bytes = bytes}},
                    sends ? Also{.consumes = {value}} : Also{.produces = {value}});
    sketch.Give({sends ? 0 : 1});
  }
  return program;
}

/// H100 nodes, the ranks of a program on the first GPU of each.
ClusterSpec OneRankANode(int num_nodes) {
  ClusterSpec spec = topology::H100Dgx(num_nodes);
  for (int node = 0; node < num_nodes; ++node) spec.rank_devices.emplace_back(node * 8);
  return spec;
}

TEST(WireBound, AnAllReduceTakesWhatItsUplinkTakes) {
  // Two ranks under a leaf each: 2·(2-1)/2 = 1 GB goes over the NICs (50e9 B/s: 20 ms) and the
  // uplinks; the closed form of 1 ms knows of neither here.
  ClusterSpec spec = OneRankANode(2);
  spec.fabric.nodes_per_leaf_group.value = 1;
  for (const auto& [rate, ms] :
       {std::pair{50e9, 20}, std::pair{5e9, 200}, std::pair{0.5e9, 2000}}) {
    // One port for the one NIC of 50e9 B/s; a fault leaves a part of it.
    spec.link_faults = {{FaultyPart::kUplink, base::NodeId(0), 0, rate / 50e9}};
    const FlowRun run = RunFlows(Sum(2, kGigabyte), spec);
    EXPECT_NEAR(static_cast<double>(run.end_ps), static_cast<double>(ms * kMs), 2) << rate;
    EXPECT_NEAR(run.nic_bytes, 2e9, 1);  // one out of each node
    EXPECT_NEAR(static_cast<double>(RunFlows(Send(kGigabyte), spec).end_ps),
                static_cast<double>(ms * kMs), 3);
  }
}

TEST(WireBound, ADelayIsWhatTheClosedFormTakesBeyondTheWire) {
  // 1 GB is 20 ms on the NIC, 100 ms by the closed form, also with the NIC at a half (40 ms); at a
  // tenth it is 200 ms.
  class Slow : public GivenNetwork {
   public:
    base::Seconds Time(plan::CollectiveKind, base::Bytes,
                       const topology::GroupLocality&) const override {
      return base::Seconds(0.1);
    }
  };
  ClusterSpec spec = OneRankANode(2);
  EXPECT_EQ(RunFlows(Sum(2, kGigabyte), spec, Slow()).end_ps, 100 * kMs);
  spec.link_faults = {{FaultyPart::kNic, base::NodeId(0), 0, 0.5}};
  EXPECT_EQ(RunFlows(Sum(2, kGigabyte), spec, Slow()).end_ps, 100 * kMs);
  spec.link_faults[0].bandwidth_factor = 0.1;
  EXPECT_NEAR(static_cast<double>(RunFlows(Sum(2, kGigabyte), spec, Slow()).end_ps),
              static_cast<double>(200 * kMs), 2);
}

TEST(WireBound, ASlowPcieLinkBoundsACollectiveBetweenNodesInBothNetworks) {
  // 0.02 of 64e9 B/s are 1.28e9: 1 GB takes 781.25 ms.
  ClusterSpec spec = OneRankANode(2);
  spec.link_faults = {{FaultyPart::kPcie, base::NodeId(1), 0, 0.02}};
  EXPECT_NEAR(static_cast<double>(RunFlows(Sum(2, kGigabyte), spec).end_ps), 781.25 * kMs, 2);
  const std::vector<base::Rank> ranks = {base::Rank(0), base::Rank(1)};
  const topology::GroupLocality group = topology::Cluster(spec).Locality(ranks);
  EXPECT_NEAR(group.slowest_nic.value(), 1.28e9, 1e-3);
  const NcclModel nccl(ShippedProfile("h100-sxm"));
  for (const auto kind : {plan::CollectiveKind::kAllReduce, plan::CollectiveKind::kAllGather,
                          plan::CollectiveKind::kRingExchange}) {
    const base::Seconds time = nccl.Time(kind, base::Bytes(kGigabyte), group);
    // As if the NIC were as slow.
    const base::Seconds slow_nic =
        nccl.Time(kind, base::Bytes(kGigabyte), AcrossNodes(2, 1, 450e9, 1.28e9));
    EXPECT_NEAR(time.value(), slow_nic.value(), 1e-9);
    EXPECT_GT(time.value(), kind == plan::CollectiveKind::kAllGather ? 0.3906 : 0.7812);
  }
}

TEST(WireBound, JitterMakesNothingFasterThanItsWires) {
  // The closed form is the wire: half of the factors are below 1.
  const WireModel wire;
  ClusterSpec spec = OneRankANode(2);
  const FlowRun smooth = RunFlows(Sum(2, kGigabyte), spec, wire);
  EXPECT_NEAR(static_cast<double>(smooth.end_ps), static_cast<double>(20 * kMs), 2);
  spec.jitter = topology::Jitter{.communication = {.deviation = 0.3}};
  int num_slower = 0;
  for (spec.jitter->seed = 0; spec.jitter->seed < 20; ++spec.jitter->seed) {
    const FlowRun varied = RunFlows(Sum(2, kGigabyte), spec, wire);
    EXPECT_GE(varied.end_ps, smooth.end_ps);
    EXPECT_EQ(varied.nic_bytes, smooth.nic_bytes);
    num_slower += varied.end_ps > smooth.end_ps ? 1 : 0;
  }
  // The slower of two is below the mean in a quarter of cases and a little more.
  EXPECT_GT(num_slower, 5);
  EXPECT_LT(num_slower, 20);
}

/// Up to 12 GPUs of a cluster, in no order.
std::vector<base::DeviceId> SomeGpus(int num_gpus, base::RandomStream& random) {
  std::vector<base::DeviceId> gpus;
  for (int gpu = 0; gpu < num_gpus; ++gpu) gpus.emplace_back(gpu);
  for (std::size_t at = gpus.size(); at > 1; --at)
    std::swap(
        gpus[at - 1],
        gpus[static_cast<std::size_t>(random.UniformInt(0, static_cast<std::int64_t>(at) - 1))]);
  gpus.resize(
      std::min<std::size_t>(gpus.size(), static_cast<std::size_t>(random.UniformInt(2, 12))));
  return gpus;
}

/// The same with one kind of link faster.
ClusterSpec Faster(ClusterSpec spec, base::RandomStream& random) {
  const auto kind = random.UniformInt(0, 4);
  const double factor = random.UniformReal() + 1;
  const auto speed_up = [factor](topology::Sourced<base::BytesPerSecond>& rate) {
    rate.value = rate.value * factor;
  };
  for (topology::NodeGroup& group : spec.node_groups) {
    if (kind == 0) speed_up(group.nvlink_bandwidth);
    if (kind == 1) speed_up(group.pcie_bandwidth);
    if (kind == 2) speed_up(group.nic_bandwidth);
  }
  if (kind == 3) spec.fabric.oversubscription.value = 1;
  if (kind == 4)
    for (topology::LinkFault& fault : spec.link_faults)
      if (fault.bandwidth_factor > 0) fault.bandwidth_factor = 1;
  return spec;
}

TEST(WireBound, NothingAloneIsSlowerForMoreBandwidthNorFasterForAFault) {
  const WireModel wire;
  int num_tried = 0;
  int num_different = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::RandomStream random(seed, "wire_bound");
    ClusterSpec spec = tests::RandomCluster(random);
    const int num_gpus = topology::Cluster(spec).num_gpus();
    if (num_gpus < 2) continue;
    spec.rank_devices = SomeGpus(num_gpus, random);
    tests::AddFaults(spec, random, 4, 0.2);
    ClusterSpec worse = spec;
    tests::AddFaults(worse, random, 3, 0);
    const ClusterSpec better = Faster(spec, random);
    for (const plan::Program& program :
         {Sum(static_cast<int>(spec.rank_devices.size()), kGigabyte), Send(kGigabyte)}) {
      try {
        const auto now = static_cast<double>(RunFlows(program, spec, wire).end_ps);
        const auto slow = static_cast<double>(RunFlows(program, worse, wire).end_ps);
        const auto fast = static_cast<double>(RunFlows(program, better, wire).end_ps);
        ++num_tried;
        num_different += (fast < now ? 1 : 0) + (slow > now ? 1 : 0);
        EXPECT_LE(fast, now * (1 + 1e-9));
        EXPECT_GE(slow, now * (1 - 1e-9));
      } catch (const base::Error&) {  // cut off
      }
    }
  }
  EXPECT_GT(num_tried, 300);
  EXPECT_GT(num_different, 100);
}

}  // namespace
}  // namespace isthmus::sim
