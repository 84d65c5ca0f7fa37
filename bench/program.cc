// Programs of a pipeline of 8 stages (8 ranks: of one) and tensor-parallel groups of 8 with an
// encoder on the first stage, 32 microbatches.
//
//   BuildProgram/n, ValidateProgram/n   n ranks; items are ops of all ranks

#include "plan/program/program.h"

#include <cstdint>
#include <utility>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "plan/program/validate.h"

namespace isthmus::plan {
namespace {

Module Decoder(int pp, int dp) {
  Module llm{.name = "llm", .kind = ModuleKind::kDecoder};
  llm.transformer = {.num_layers = 64,
                     .hidden = 8192,
                     .ffn_hidden = 32768,
                     .num_heads = 64,
                     .num_kv_heads = 64,
                     .head_dim = 128,
                     .vocab_size = 128000,
                     .max_positions = 8192};
  llm.layout = Layout{.tp = 8, .pp = pp, .dp = dp};
  return llm;
}

Module Encoder() {
  Module vit{.name = "vision", .kind = ModuleKind::kVit, .projector = Projector{}};
  vit.transformer = {.num_layers = 32,
                     .hidden = 1280,
                     .ffn_hidden = 5120,
                     .num_heads = 16,
                     .num_kv_heads = 16,
                     .head_dim = 80,
                     .max_positions = 1024};
  vit.tokens_per_sample = vit.llm_tokens_per_sample = 4096;
  vit.span_tokens = 1024;
  vit.input_width = 588;
  return vit;
}

Job JobOf(std::int64_t num_ranks) {
  Job job{.name = "bench", .placement = Placement::kHomogeneous};
  job.num_ranks = static_cast<int>(num_ranks);
  const int pp = job.num_ranks < 64 ? 1 : 8;
  const int dp = job.num_ranks / (8 * pp);
  job.modules = {Encoder(), Decoder(pp, dp)};
  job.edges = {{0, 1}};
  job.workload = {.sequence_length = 8192, .global_batch = 32L * dp, .microbatch_size = 1};
  return job;
}

std::int64_t OpsOf(const Program& program) {
  std::int64_t ops = 0;
  for (const std::uint32_t role : program.role_of_rank) {
    ops += static_cast<std::int64_t>(program.roles[role].ops.size());
  }
  return ops;
}

void BuildProgram(benchmark::State& state) {
  const Job job = JobOf(state.range(0));
  std::int64_t ops = 0;
  for (auto _ : state) ops += OpsOf(Build(job));
  state.SetItemsProcessed(ops);
}
BENCHMARK(BuildProgram)
    ->Arg(8)
    ->Arg(64)
    ->Arg(512)
    ->Arg(4096)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond);

void ValidateProgram(benchmark::State& state) {
  const Program program = Build(JobOf(state.range(0)));
  for (auto _ : state) ISTHMUS_CHECK(Validate(program).ok());
  state.SetItemsProcessed(state.iterations() * OpsOf(program));
}
BENCHMARK(ValidateProgram)->Arg(64)->Arg(512)->Arg(4096)->Arg(16384)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace isthmus::plan
