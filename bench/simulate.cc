// What `isthmus simulate` does, in process: no trace is written, figures are made.
//
//   Load/scenario                    the scenario's file and all that it names
//   Simulate/scenario/network/fold   from a loaded scenario to its figures; items are ops

#include "sim/simulate.h"

#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "plan/program/program.h"
#include "reports/analysis.h"
#include "scenarios/scenario.h"
#include "topology/cluster.h"

namespace isthmus::sim {
namespace {

scenarios::Scenario Load(const std::string& name) {
  return scenarios::LoadScenario(ISTHMUS_SOURCE_DIR "/scenarios/" + name + ".yaml");
}

void LoadFile(benchmark::State& state, const char* name) {
  for (auto _ : state) benchmark::DoNotOptimize(Load(name));
}

void SimulateScenario(benchmark::State& state, const char* name, Network network, Folding folding) {
  const scenarios::Scenario scenario = Load(name);
  std::uint64_t ops = 0;
  for (auto _ : state) {
    const topology::Cluster cluster(scenario.cluster);
    reports::Analysis analysis;
    const Outcome outcome = Simulate(
        plan::Build(scenario.job), cluster, scenario.profile,
        {.folding = folding, .network = network, .record_memory_counters = false}, {}, analysis);
    benchmark::DoNotOptimize(analysis.figures().step_time_s);
    ops += outcome.num_ops;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(ops));
}

void Register(const char* name) {
  const std::string called(name);
  benchmark::RegisterBenchmark(("Load/" + called).c_str(), LoadFile, name)
      ->Unit(benchmark::kMillisecond);
  for (const Network network : {Network::kNccl, Network::kFlow}) {
    for (const Folding folding : {Folding::kAuto, Folding::kOff}) {
      const std::string title = "Simulate/" + called +
                                (network == Network::kNccl ? "/nccl" : "/flow") +
                                (folding == Folding::kAuto ? "/folded" : "/unfolded");
      benchmark::RegisterBenchmark(title.c_str(), SimulateScenario, name, network, folding)
          ->Unit(benchmark::kMillisecond);
    }
  }
}

const bool kAreRegistered = [] {
  for (const char* name : {"quickstart", "paper/A4/A4.8.NC", "scale/gpt3-175b-1024",
                           "scale/gpt3-175b-4096", "scale/llama3-405b-16384"})
    Register(name);
  return true;
}();

}  // namespace
}  // namespace isthmus::sim
