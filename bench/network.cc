// The flow network; items are flows.
//
//   Alone/n       n messages, each on links of its own: no solver
//   Rings/n       n ring edges, a message beside each: every NIC is shared by two, over SimGrid
//   Spine/n       n messages over one pair of uplinks that is too small for them, over SimGrid
//   Name/n        routes and shapes of n messages

#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/network/flow_network.h"
#include "topology/presets.h"

namespace isthmus::sim {
namespace {

constexpr double kBytes = 1e6;

/// A GPU of each of n nodes, and messages between them.
struct Given {
  explicit Given(int num_nodes, double oversubscription = 1)
      : cluster(Spec(num_nodes, oversubscription)) {}

  static topology::ClusterSpec Spec(int num_nodes, double oversubscription) {
    topology::ClusterSpec spec = topology::H100Dgx(num_nodes);
    spec.fabric.oversubscription.value = oversubscription;
    if (oversubscription > 1) spec.fabric.nodes_per_leaf_group.value = num_nodes / 2;
    return spec;
  }
  static base::DeviceId Gpu(int node) { return base::DeviceId(node * 8); }

  topology::Cluster cluster;
};

/// Starts one bundle of each shape, over and over, and waits until all are over.
void Run(benchmark::State& state, const Traffic& traffic, std::vector<std::uint32_t> shapes) {
  FlowNetwork network(traffic, LoadFlowSolver);
  std::int64_t now = 0;
  for (auto _ : state) {
    for (const std::uint32_t shape : shapes)
      network.Start(now, 0, shape, kBytes, plan::Purpose::kPipeline, {});
    while (network.NextEvent() != FlowNetwork::kNever) {
      now = network.NextEvent();
      benchmark::DoNotOptimize(network.Advance(now));
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(network.num_flows()));
}

void Alone(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const Given given(n);
  TrafficMap map(given.cluster);
  std::vector<std::uint32_t> shapes;
  for (int node = 0; node < n; ++node)
    shapes.push_back(map.Message(Given::Gpu(node), Given::Gpu((node + 1) % n)));
  Run(state, std::move(map).Settled(), std::move(shapes));
}
BENCHMARK(Alone)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void Rings(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const Given given(n);
  TrafficMap map(given.cluster);
  std::vector<std::uint32_t> shapes;
  std::vector<base::DeviceId> ring;
  for (int node = 0; node < n; ++node) {
    ring.push_back(Given::Gpu(node));
    shapes.push_back(map.Message(Given::Gpu(node), Given::Gpu((node + n / 2) % n)));
  }
  shapes.push_back(map.Collective(plan::CollectiveKind::kReduceScatter, ring));
  Run(state, std::move(map).Settled(), std::move(shapes));
}
BENCHMARK(Rings)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void Spine(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const Given given(2 * n, 4);
  TrafficMap map(given.cluster);
  std::vector<std::uint32_t> shapes;
  for (int node = 0; node < n; ++node)
    shapes.push_back(map.Message(Given::Gpu(node), Given::Gpu(node + n)));
  Run(state, std::move(map).Settled(), std::move(shapes));
}
BENCHMARK(Spine)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void Name(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const Given given(n);
  for (auto _ : state) {
    TrafficMap map(given.cluster);
    for (int gpu = 0; gpu < 8 * n; ++gpu)
      map.Message(base::DeviceId(gpu), base::DeviceId((gpu + 8) % (8 * n)));
    benchmark::DoNotOptimize(std::move(map).Settled());
  }
  state.SetItemsProcessed(state.iterations() * 8 * n);
}
BENCHMARK(Name)->Arg(512)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isthmus::sim
