#include "sim/memory/ledger.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/model_catalogue.h"
#include "tests/unit/sim/tiny_program.h"

namespace isthmus::sim {
namespace {

using Counter = std::pair<std::int64_t, std::int64_t>;  // (time, bytes)

Ledger LedgerOf(const plan::Program& program, const TinyRun& run, std::uint32_t cls = 0) {
  const base::Rank rank = run.lowered.classes[cls].representative;
  return {program, program.role(rank), program.table(rank)};
}

std::vector<Counter> Curve(const plan::Program& program, const TinyRun& run,
                           std::uint32_t cls = 0) {
  std::vector<Counter> curve;
  for (const traces::MemoryCounter& counter :
       LedgerOf(program, run, cls).Counters(0, {}, run.result.times[cls])) {
    curve.emplace_back(counter.time_ps, counter.bytes);
  }
  return curve;
}

std::int64_t SumOf(const std::map<std::string, std::int64_t>& categories) {
  return std::accumulate(categories.begin(), categories.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& entry) { return sum + entry.second; });
}

/// Two microbatches, forward then backward, 1,500 B that stay and contexts of 200 B.
class TwoMicrobatches : public ::testing::Test {
 protected:
  TwoMicrobatches() {
    RoleSketch sketch(program_);
    const auto parameters = sketch.NewValue({.category = plan::MemoryCategory::kParameters,
                                             .persistent = true,
                                             .size = sketch.Size(1000)});
    const auto state = sketch.NewValue({.category = plan::MemoryCategory::kOptimizerState,
                                        .persistent = true,
                                        .size = sketch.Size(500)});
    const auto first = sketch.NewValue({.size = sketch.Size(200)});
    const auto second = sketch.NewValue({.size = sketch.Size(200)});
    sketch.Compute(100, {.consumes = {parameters}, .produces = {first}, .transient_bytes = 50});
    sketch.Compute(100, {.consumes = {parameters}, .produces = {second}, .transient_bytes = 50});
    sketch.Compute(200, {.consumes = {parameters, second}, .transient_bytes = 70});
    sketch.Compute(200, {.consumes = {parameters, first}, .transient_bytes = 70});
    sketch.Optimizer(10, {.consumes = {state, parameters}});
    sketch.Give({0});
  }

  plan::Program program_ = EmptyProgram({});
};

TEST_F(TwoMicrobatches, CurveIsTheOneDerivedByHand) {
  const TinyRun run = RunGiven(program_);
  // 1,500 stay. Forward: + context + 50; at 200 the transient 50 makes room for 70; at 400 the
  // second context goes, at 600 the first and the transient.
  EXPECT_EQ(Curve(program_, run), (std::vector<Counter>{{0, 1500 + 200 + 50},
                                                        {100, 1500 + 400 + 50},
                                                        {200, 1500 + 400 + 70},
                                                        {400, 1500 + 200 + 70},
                                                        {600, 1500}}));
}

TEST_F(TwoMicrobatches, PeakNamesItsPartsAndSumsToTheDevice) {
  const TinyRun run = RunGiven(program_);
  const MemoryFacts facts{.workspace_bytes = 30,
                          .reserved_factor = 1.1,
                          .reserved_constant_bytes = 7,
                          .context_bytes = 400,
                          .nccl_bytes_per_communicator = 25,
                          .capacity_bytes = 3000,
                          .verdict_margin = 0.02};
  const traces::MemoryPeak peak = LedgerOf(program_, run).Peak(facts, 3, &run.result.times[0]);
  EXPECT_EQ(peak.time_ps, 200);
  EXPECT_EQ(peak.peak_bytes, 1970 + 30);
  // Slack 10 % of what is allocated and 7, three communicators of 25.
  EXPECT_EQ(peak.reserved_bytes, 2000 + 200 + 7);
  EXPECT_EQ(peak.device_bytes, 2000 + 207 + 400 + 75);
  EXPECT_EQ(SumOf(peak.categories), peak.device_bytes);
  EXPECT_EQ(peak.categories.at("parameters"), 1000);
  EXPECT_EQ(peak.categories.at("optimizer_state"), 500);
  EXPECT_EQ(peak.categories.at("activations"), 400);
  EXPECT_EQ(peak.categories.at("transient"), 70);
  EXPECT_EQ(peak.categories.at("workspace"), 30);
  EXPECT_EQ(peak.verdict, "fits");
}

TEST_F(TwoMicrobatches, VerdictKeepsItsMargin) {
  const TinyRun run = RunGiven(program_);
  const Ledger ledger = LedgerOf(program_, run);
  // 1,970 B: 10 % more is 2,167, 10 % less 1,773.
  const auto verdict = [&](std::int64_t capacity) {
    return ledger.Peak({.capacity_bytes = capacity, .verdict_margin = 0.1}, 0).verdict;
  };
  EXPECT_EQ(verdict(2168), "fits");
  EXPECT_EQ(verdict(2167), "borderline");
  EXPECT_EQ(verdict(1774), "borderline");
  EXPECT_EQ(verdict(1772), "does_not_fit");
}

TEST(Ledger, OffloadedParametersAreAwayBetweenTheCopies) {
  plan::Program program = EmptyProgram({});
  RoleSketch sketch(program);
  const auto parameters = sketch.NewValue({.category = plan::MemoryCategory::kParameters,
                                           .persistent = true,
                                           .size = sketch.Size(300)});
  const auto ready = sketch.NewValue();
  const auto context = sketch.NewValue({.size = sketch.Size(250)});
  const auto turn = sketch.NewValue();
  const auto on_host = sketch.NextVersion(parameters);
  const auto back = sketch.NextVersion(on_host);
  sketch.Compute(100, {.consumes = {parameters}, .produces = {ready}});
  sketch.Copy(70, plan::CopyDirection::kToHost,
              {.consumes = {parameters, ready}, .produces = {on_host}});
  sketch.Compute(1000, {.produces = {context, turn}});
  sketch.Copy(40, plan::CopyDirection::kToDevice,
              {.consumes = {on_host, turn}, .produces = {back}});
  sketch.Compute(50, {.consumes = {back, context}});
  sketch.Give({0});
  // The copy out runs 100 … 170 beside the big compute, 100 … 1,100; the copy back 1,100 … 1,140,
  // and the last compute 1,140 … 1,190. Room is taken when the copy back starts, given up when the
  // copy out is over; the host issued the big compute behind it, so its context fills that room.
  EXPECT_EQ(Curve(program, RunGiven(program)),
            (std::vector<Counter>{{0, 300}, {170, 250}, {1100, 550}, {1190, 300}}));
}

TEST(Ledger, MessagesHoldWhatTheySendAndReceive) {
  plan::Program program = EmptyProgram({.pp = 2});
  for (int rank = 0; rank < 2; ++rank) {
    RoleSketch sketch(program);
    const auto value = sketch.NewValue({.size = sketch.Size(80)});
    if (rank == 0) {
      sketch.Compute(10, {.produces = {value}});
      sketch.Exchange({{.sends = true, .delta = 1, .value = value, .bytes = 30}},
                      {.consumes = {value}});
    } else {
      const auto turn = sketch.NewValue();
      sketch.Compute(500, {.produces = {turn}});
      sketch.Exchange({{.sends = false, .delta = -1, .value = value, .bytes = 30}},
                      {.consumes = {turn}, .produces = {value}});
      sketch.Compute(7, {.consumes = {value}});
    }
    sketch.Give({rank});
  }
  const TinyRun run = RunGiven(program);
  // Sent at 10, taken from 500 to 530.
  EXPECT_EQ(Curve(program, run, 0), (std::vector<Counter>{{0, 80}, {530, 0}}));
  // The receive buffer is there from the post; its value is read until 537.
  EXPECT_EQ(Curve(program, run, 1), (std::vector<Counter>{{0, 0}, {500, 80}, {537, 0}}));
}

/// A GPT of two layers a stage on `stages` ranks, forwards and backwards of 1 ms each; messages (a
/// picosecond per byte) take a thousandth of that.
plan::Program UniformGpt(int stages, int microbatches) {
  plan::Job job;
  job.name = "uniform";
  plan::Module llm = tests::Llama("llm", 2 * stages, 1024, 4096, 8, 8);
  llm.layout = plan::Layout{.pp = stages};
  job.modules = {llm};
  job.num_ranks = stages;
  job.workload = {.sequence_length = 512, .global_batch = microbatches, .microbatch_size = 1};
  job.optimizer.overlap_grad_reduce = false;
  job.optimizer.overlap_param_gather = false;
  plan::Program program = plan::Build(job);
  for (plan::Work& work : program.works) work.parts = GivenWork(1'000'000'000).parts;
  return program;
}

/// Bytes of one microbatch's storages of a kind and category on a role.
std::int64_t OfOneMicrobatch(const plan::Program& program, const Variant& variant,
                             plan::ValueKind kind, plan::MemoryCategory category) {
  std::int64_t bytes = 0;
  for (const plan::Storage& storage : variant.ops->storages) {
    if (storage.kind != kind || storage.category != category || storage.microbatch != 0) continue;
    bytes += program.tables[variant.table].bytes[storage.size].value();
  }
  return bytes;
}

/// Gradients of the stage's input and output, 2 B · 512 tokens · 1,024 wide each, beside the
/// contexts at the first backward: the one that came (not on the last stage) and the one for the
/// stage before (not on the first).
std::int64_t GradientBytes(std::int64_t stage, std::int64_t num_stages) {
  const std::int64_t tensor = 2L * 512 * 1024;
  return ((stage + 1 < num_stages ? 1 : 0) + (stage > 0 ? 1 : 0)) * tensor;
}

TEST(Ledger, HoldsAsManyContextsAsStagesFollow) {
  constexpr int kStages = 4;
  for (const int microbatches : {2, 8}) {
    const plan::Program program = UniformGpt(kStages, microbatches);
    const TinyRun run = RunGiven(program);
    for (std::uint32_t stage = 0; stage < kStages; ++stage) {
      const Variant& variant = run.lowered.variants[run.lowered.classes[stage].variant];
      const traces::MemoryPeak peak = LedgerOf(program, run, stage).Peak({}, 0);
      const std::int64_t context = OfOneMicrobatch(program, variant, plan::ValueKind::kContext,
                                                   plan::MemoryCategory::kActivations);
      // modelling_memory §4: min(p - s, m) in flight.
      const std::int64_t in_flight = std::min<std::int64_t>(kStages - stage, microbatches);
      EXPECT_EQ(peak.categories.at("activations"),
                in_flight * context + GradientBytes(stage, kStages))
          << "stage " << stage << ", " << microbatches << " microbatches, " << peak.moment;
    }
  }
}

TEST(Ledger, PeakOfAUniformGptIsTheClosedForm) {
  constexpr int kStages = 4;
  const plan::Program program = UniformGpt(kStages, 8);
  const TinyRun run = RunGiven(program);
  for (std::uint32_t stage = 0; stage < kStages; ++stage) {
    const Variant& variant = run.lowered.variants[run.lowered.classes[stage].variant];
    const plan::SizeTable& table = program.tables[variant.table];
    std::int64_t stays = 0;
    for (const plan::Storage& storage : variant.ops->storages) {
      if (storage.persistent && storage.size != plan::kNone32)
        stays += table.bytes[storage.size].value();
    }
    std::int64_t transient = 0;  // of the backward
    for (const plan::Op& op : variant.ops->ops) {
      if (op.kind != plan::OpKind::kCompute || op.action() != plan::Action::kBackward) continue;
      transient = std::max(transient, program.works[table.works[op.size]].transient_bytes.value());
    }
    const std::int64_t context = OfOneMicrobatch(program, variant, plan::ValueKind::kContext,
                                                 plan::MemoryCategory::kActivations);
    const std::int64_t logits =
        OfOneMicrobatch(program, variant, plan::ValueKind::kContext, plan::MemoryCategory::kLogits);
    const std::int64_t in_flight = kStages - stage;
    // M1, the turn: what stays, N contexts, what the backward needs for a moment. M2, the loss: the
    // same with one context and the logits; only the last stage has any.
    EXPECT_EQ(logits > 0, stage + 1 == kStages);
    const std::int64_t closed =
        stays + in_flight * context + logits + GradientBytes(stage, kStages) + transient;
    const traces::MemoryPeak peak = LedgerOf(program, run, stage).Peak({}, 0);
    EXPECT_EQ(peak.peak_bytes, closed) << "stage " << stage << " at " << peak.moment;
    EXPECT_EQ(SumOf(peak.categories), peak.device_bytes);
  }
}

}  // namespace
}  // namespace isthmus::sim
