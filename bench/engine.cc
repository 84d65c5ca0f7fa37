// The simulator on scenarios/scale/gpt3-175b-1024.yaml: TP8 PP8 DP16, 96 microbatches, `nccl`.
//
//   Build                       the program
//   Lower/folded, /unfolded     the program made ready for the engine
//   Engine/fused                unfolded, events kept by a recorder; items are ops
//   Engine/expanded             unfolded, every piece of every block an event; nothing is kept

#include "sim/engine/engine.h"

#include <cstdint>

#include <benchmark/benchmark.h>

#include "plan/program/program.h"
#include "scenarios/scenario.h"
#include "sim/cost/kernel_model.h"
#include "sim/cost/nccl_model.h"
#include "sim/engine/lower.h"
#include "topology/cluster.h"
#include "traces/recorder.h"

namespace isthmus::sim {
namespace {

/// Everything that a run starts from, made once.
struct Given {
  scenarios::Scenario scenario =
      scenarios::LoadScenario(ISTHMUS_SOURCE_DIR "/scenarios/scale/gpt3-175b-1024.yaml");
  plan::Program program = plan::Build(scenario.job);
  topology::Cluster cluster{scenario.cluster};
  KernelModel kernels{scenario.profile};
  NcclModel collectives{scenario.profile};
  SegmentModel segments{scenario.profile, kernels, collectives};

  Lowered Lower(bool fold) const {
    return sim::Lower(program, cluster, {.segments = &segments, .collectives = &collectives}, fold);
  }
};

const Given& Start() {
  static const Given given;
  return given;
}

void Build(benchmark::State& state) {
  const plan::Job& job = Start().scenario.job;
  for (auto _ : state) benchmark::DoNotOptimize(plan::Build(job));
}
BENCHMARK(Build)->Unit(benchmark::kMillisecond);

void LowerProgram(benchmark::State& state, bool fold) {
  for (auto _ : state) benchmark::DoNotOptimize(Start().Lower(fold));
}
BENCHMARK_CAPTURE(LowerProgram, folded, true)->Name("Lower/folded")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LowerProgram, unfolded, false)
    ->Name("Lower/unfolded")
    ->Unit(benchmark::kMillisecond);

void RunEngine(benchmark::State& state, bool expanded) {
  const Lowered lowered = Start().Lower(false);
  std::uint64_t ops = 0;
  std::uint64_t events = 0;
  for (auto _ : state) {
    traces::Recorder recorder;
    events = 0;
    Engine engine(lowered, {.expanded = expanded}, [&](std::span<const traces::Event> portion) {
      events += portion.size();
      if (!expanded) recorder.OnEvents(portion);  // 43 M events would take 1.7 GB
    });
    ops += engine.Run().num_ops;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(ops));
  state.counters["events"] = static_cast<double>(events);
}
BENCHMARK_CAPTURE(RunEngine, fused, false)->Name("Engine/fused")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RunEngine, expanded, true)
    ->Name("Engine/expanded")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace isthmus::sim
