// Analysis of a trace of 1,024 ranks recorded singly: pipelines of 8 stages, tensor-parallel groups
// of 8, forward passes with a message before each, a gap before every op, one gradient reduction.
//
//   Analyse/n     n microbatches, about 4,096 · n events; items are events

#include "reports/analysis.h"

#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "traces/recorder.h"

namespace isthmus::reports {
namespace {

constexpr std::uint32_t kTp = 8;
constexpr std::uint32_t kDp = 16;
constexpr std::uint32_t kPp = 8;
constexpr std::uint32_t kStageRanks = kTp * kDp;
constexpr std::int64_t kForwardPs = 10;
constexpr std::int64_t kMessagePs = 2;
constexpr std::int64_t kPeriodPs = kForwardPs + kMessagePs + 1;

traces::RoleRecord Stage(std::uint32_t stage, std::int64_t num_microbatches) {
  traces::RoleRecord role;
  role.name = "llm." + std::to_string(stage);
  role.lanes = {{"compute", "compute"}, {"p2p", "p2p"}, {"communicator", "dp"}};
  role.groups = {"tp", "dp"};
  for (std::int32_t microbatch = 0; microbatch < num_microbatches; ++microbatch) {
    const auto first = static_cast<std::uint32_t>(role.ops.size());
    traces::OpRecord message{.category = traces::Category::kPipelineComm, .kind = "p2p", .lane = 1};
    if (stage > 0) {
      message.name = "receive";
      message.transfers = {{.sends = false, .peer = 0, .bytes = 1}};
      role.ops.push_back(message);
    }
    traces::OpRecord forward{
        .name = "forward", .kind = "compute", .microbatch = microbatch, .group = 1};
    if (stage > 0) forward.dependencies = {{first, 1}};
    role.ops.push_back(forward);
    if (stage + 1 < kPp) {
      message.name = "send";
      message.transfers = {{.sends = true, .peer = 1, .bytes = 1}};
      message.dependencies = {{static_cast<std::uint32_t>(role.ops.size()) - 1, 0}};
      role.ops.push_back(message);
    }
  }
  role.ops.push_back({.name = "reduce_scatter",
                      .category = traces::Category::kDpComm,
                      .kind = "collective",
                      .lane = 2,
                      .group = 2,
                      .dependencies = {{static_cast<std::uint32_t>(role.ops.size()) - 1, 0}}});
  return role;
}

traces::Header HeaderOf(std::int64_t num_microbatches) {
  traces::Header header;
  header.num_ranks = static_cast<std::int32_t>(kStageRanks * kPp);
  header.modules = {{.name = "llm"}};
  header.groups.resize(std::size_t{kPp} * (kDp + kTp));
  for (std::uint32_t stage = 0; stage < kPp; ++stage) {
    header.roles.push_back(Stage(stage, num_microbatches));
    for (std::uint32_t index = 0; index < kStageRanks; ++index) {
      const std::uint32_t rank = stage * kStageRanks + index;
      const std::uint32_t tp_group = stage * kDp + index / kTp;
      const std::uint32_t dp_group = kPp * kDp + stage * kTp + index % kTp;
      header.groups[tp_group].push_back(rank);
      header.groups[dp_group].push_back(rank);
      header.classes.push_back({.representative = static_cast<std::int32_t>(rank),
                                .role = stage,
                                .groups = {tp_group, dp_group},
                                .peers = {stage > 0 ? rank - kStageRanks : rank,
                                          stage + 1 < kPp ? rank + kStageRanks : rank}});
    }
  }
  return header;
}

traces::Trace MakeTrace(std::int64_t num_microbatches) {
  traces::Trace trace;
  trace.header = HeaderOf(num_microbatches);
  for (std::uint32_t rank = 0; rank < trace.header.classes.size(); ++rank) {
    const std::uint32_t stage = trace.header.classes[rank].role;
    std::int64_t now = 0;
    std::uint32_t op_index = 0;
    for (const traces::OpRecord& op : trace.header.roles[stage].ops) {
      const std::int64_t start = (op.microbatch + std::int64_t{stage}) * kPeriodPs;
      if (op.kind == "compute") {
        now = start + kForwardPs;
        trace.events.push_back({rank, op_index, 0, start, start, now});
      } else if (op.kind == "collective") {
        trace.events.push_back({rank, op_index, 0, now, now + 5, now + 50});
      } else {
        // A receive is posted when the forward before it is over, a send after its forward.
        const std::int64_t sent = op.transfers[0].sends ? now : now + kPeriodPs - kForwardPs - 2;
        trace.events.push_back({rank, op_index, 0, now, now, now});
        trace.events.push_back({rank, op_index, 1, now, sent, sent + kMessagePs});
      }
      trace.trailer.end_ps = std::max(trace.trailer.end_ps, trace.events.back().end_ps);
      ++op_index;
    }
  }
  return trace;
}

void Analyse(benchmark::State& state) {
  const traces::Trace trace = MakeTrace(state.range(0));
  for (auto _ : state) {
    Analysis analysis;
    traces::Replay(trace, analysis);
    benchmark::DoNotOptimize(analysis.figures().step_time_s);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.events.size()));
}
BENCHMARK(Analyse)->Arg(32)->Arg(220)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isthmus::reports
