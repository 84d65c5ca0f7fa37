// The simulator on GPT-3 175B with TP8 PP8 DP16 and 96 microbatches of one sample (1,024 GPUs, the
// job of scenarios/scale/gpt3-175b-1024.yaml), profile h100-sxm, `nccl` network.
//
//   Build                       the program
//   Lower/folded, /unfolded     the program made ready for the engine
//   Engine/fused, /expanded     unfolded, events handed to a recorder; items are ops
//   Simulate/folded, /unfolded  from program to trace, memory included; nothing is kept

#include "sim/engine/engine.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "plan/program/program.h"
#include "scenarios/scenario.h"
#include "sim/cost/kernel_model.h"
#include "sim/cost/nccl_model.h"
#include "sim/engine/lower.h"
#include "sim/simulate.h"
#include "topology/cluster.h"
#include "topology/presets.h"
#include "traces/recorder.h"

namespace isthmus::sim {
namespace {

constexpr int kNumRanks = 1024;

plan::Job Gpt3() {
  plan::Module llm;
  llm.name = "llm";
  llm.kind = plan::ModuleKind::kDecoder;
  llm.transformer = {.num_layers = 96,
                     .hidden = 12288,
                     .ffn_hidden = 49152,
                     .num_heads = 96,
                     .num_kv_heads = 96,
                     .head_dim = 128,
                     .vocab_size = 51200,
                     .tied_embeddings = true,
                     .max_positions = 2048};
  llm.layout = plan::Layout{.tp = 8, .pp = 8, .dp = 16};
  plan::Job job;
  job.name = "gpt3-175b-1024";
  job.modules = {llm};
  job.workload = {.sequence_length = 2048, .global_batch = 96 * 16, .microbatch_size = 1};
  job.num_ranks = kNumRanks;
  return job;
}

/// Everything that a run starts from, made once.
struct Given {
  plan::Program program = plan::Build(Gpt3());
  topology::Cluster cluster{topology::H100Dgx(kNumRanks / 8)};
  profiles::Profile profile = scenarios::LoadProfile("h100-sxm");
  KernelModel kernels{profile};
  NcclModel collectives{profile};
  SegmentModel segments{profile, kernels, collectives};

  Lowered Lower(bool fold) const {
    return sim::Lower(program, cluster, {.segments = &segments, .collectives = &collectives}, fold);
  }
};

const Given& Start() {
  static const Given given;
  return given;
}

/// Takes what it is given and keeps nothing.
class Drain final : public traces::TraceSink {
 public:
  void OnHeader(const traces::Header& header) override { benchmark::DoNotOptimize(&header); }
  void OnEvents(std::span<const traces::Event> events) override {
    benchmark::DoNotOptimize(events.data());
  }
  void OnMemory(std::span<const traces::MemoryCounter> counters) override {
    benchmark::DoNotOptimize(counters.data());
  }
  void OnTrailer(const traces::Trailer& trailer) override { benchmark::DoNotOptimize(&trailer); }
};

void Build(benchmark::State& state) {
  const plan::Job job = Gpt3();
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
    Engine engine(
        lowered, {.expanded = expanded},
        [&recorder](std::span<const traces::Event> portion) { recorder.OnEvents(portion); });
    ops += engine.Run().num_ops;
    events = recorder.events().size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(ops));
  state.counters["events"] = static_cast<double>(events);
}
BENCHMARK_CAPTURE(RunEngine, fused, false)->Name("Engine/fused")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RunEngine, expanded, true)
    ->Name("Engine/expanded")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

void SimulateProgram(benchmark::State& state, Folding folding) {
  const Given& given = Start();
  for (auto _ : state) {
    Drain sink;
    benchmark::DoNotOptimize(
        Simulate(given.program, given.cluster, given.profile, {.folding = folding}, {}, sink));
  }
}
BENCHMARK_CAPTURE(SimulateProgram, folded, Folding::kAuto)
    ->Name("Simulate/folded")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SimulateProgram, unfolded, Folding::kOff)
    ->Name("Simulate/unfolded")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isthmus::sim
