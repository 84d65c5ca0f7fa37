// Trace files of scenarios/scale/gpt3-175b-1024.yaml with 8 microbatches, every rank recorded;
// items are events, and every event takes so many bytes in the file.
//
//   Write/isthmus, /pftrace, /json, /jsonl, /csv   as OpenTraceFile writes them
//   Read/isthmus                                   back again, into memory

#include <cstdint>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>

#include "plan/program/program.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "topology/cluster.h"
#include "traces/recorder.h"
#include "traces/trace_file.h"

namespace isthmus::traces {
namespace {

const Trace& Recorded() {
  static const Trace trace = [] {
    const scenarios::Scenario scenario = scenarios::LoadScenario(
        ISTHMUS_SOURCE_DIR "/scenarios/scale/gpt3-175b-1024.yaml", {"workload.num_microbatches=8"});
    Recorder recorder;
    sim::Simulate(plan::Build(scenario.job), topology::Cluster(scenario.cluster), scenario.profile,
                  {.folding = sim::Folding::kOff}, {}, recorder);
    return recorder.Take();
  }();
  return trace;
}

std::filesystem::path FileOf(const char* ending) {
  return std::filesystem::temp_directory_path() / (std::string("isthmus_bench.") + ending);
}

void Write(benchmark::State& state, const char* ending) {
  const Trace& trace = Recorded();
  const std::filesystem::path file = FileOf(ending);
  for (auto _ : state) Replay(trace, *OpenTraceFile(file));
  const auto num_events = static_cast<std::int64_t>(trace.events.size());
  state.SetItemsProcessed(state.iterations() * num_events);
  state.counters["bytes/event"] =
      static_cast<double>(std::filesystem::file_size(file)) / static_cast<double>(num_events);
  std::filesystem::remove(file);
}
BENCHMARK_CAPTURE(Write, isthmus, "isthmus")->Name("Write/isthmus")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Write, pftrace, "pftrace")->Name("Write/pftrace")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Write, json, "json")->Name("Write/json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Write, jsonl, "jsonl")->Name("Write/jsonl")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Write, csv, "csv")->Name("Write/csv")->Unit(benchmark::kMillisecond);

void Read(benchmark::State& state) {
  const std::filesystem::path file = FileOf("isthmus");
  Replay(Recorded(), *OpenTraceFile(file));
  for (auto _ : state) benchmark::DoNotOptimize(LoadTraceFile(file));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(Recorded().events.size()));
  std::filesystem::remove(file);
}
BENCHMARK(Read)->Name("Read/isthmus")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isthmus::traces
