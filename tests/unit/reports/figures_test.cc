#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/unit/reports/run_builder.h"

namespace isthmus::reports {
namespace {

RunBuilder OneRank(std::int64_t end_ps) {
  RunBuilder run;
  const auto rank = run.AddClass("llm.0");
  run.Compute(rank, 0, end_ps);
  return run;
}

TEST(FiguresTest, RatesFollowFromStepTimeAndTheNamedConvention) {
  RunBuilder run = OneRank(2'000'000'000'000);  // 2 s
  run.header.num_ranks = 4;
  run.header.tokens_per_step = 1000;
  run.header.samples_per_step = 10;
  run.header.step_flops = {{"model", 8e14}, {"hardware", 1.2e15}, {"6pt", 4e14}};
  run.header.peak_flops_per_gpu = 2e14;
  run.header.flop_convention = "model: GEMMs and attention";
  Figures figures = run.Analyse();
  EXPECT_DOUBLE_EQ(figures.step_time_s, 2.0);
  EXPECT_DOUBLE_EQ(figures.tokens_per_s, 500);
  EXPECT_DOUBLE_EQ(figures.samples_per_s, 5);
  // 8e14 / (2 s · 4) = 1e14; of a peak of 2e14 half; the hardware count is 1.5 times as much.
  EXPECT_DOUBLE_EQ(figures.model_tflops_per_gpu, 100);
  EXPECT_DOUBLE_EQ(figures.mfu, 0.5);
  EXPECT_DOUBLE_EQ(figures.hfu, 0.75);

  run.header.flop_convention = "6pt: 6 · parameters · tokens, as the paper counts";
  figures = run.Analyse();
  EXPECT_DOUBLE_EQ(figures.mfu, 0.25);
  EXPECT_DOUBLE_EQ(figures.hfu, 0.75);
}

TEST(FiguresTest, SeveralStepsGiveTheMeanPeriodAfterTheFirst) {
  RunBuilder run;
  const auto rank = run.AddClass("a");
  // A slow first step of 100 ps, then steps of 20 and 30 ps, of which 15 and 15 are compute.
  run.Compute(rank, 0, 100);
  run.Compute(rank, 105, 120);
  run.Compute(rank, 120, 135);
  run.header.num_steps = 3;
  run.trailer.end_ps = 150;
  run.trailer.step_end_ps = {100, 120, 150};
  const Figures figures = run.Analyse();
  EXPECT_EQ(figures.window_ps, 50);
  EXPECT_DOUBLE_EQ(figures.step_time_s, 25e-12);
  EXPECT_DOUBLE_EQ(figures.shares[static_cast<std::size_t>(TimeUse::kCompute)], 30.0 / 50.0);
  EXPECT_EQ(figures.critical_path_ps, 50);
}

TEST(FiguresTest, BoundariesGetTheExposedTimeOfTheirOps) {
  RunBuilder run;
  run.header.modules = {{.name = "vision"}, {.name = "audio"}, {.name = "llm"}};
  run.header.boundaries = {{"vision", "llm", "colocated fan-in 2", 64, 32},
                           {"audio", "llm", "colocated equal", 8, 8}};
  run.header.groups = {{0}};
  const auto rank = run.AddClass("a", 3, {0});
  run.AddClass("b", 1);
  run.header.roles[0].groups = {"audio->llm gather"};
  const auto made = run.Compute(rank, 0, 10);
  // The first names its edge in its group, the second by its module, vision.
  auto op = run.Collective(rank, 1, 10, 10, 14, {{made}});
  run.op(rank, op).category = traces::Category::kBoundaryComm;
  op = run.Collective(rank, 0, 14, 14, 22, {{op}});
  run.op(rank, op).category = traces::Category::kBoundaryComm;
  run.op(rank, op).module = 0;
  run.Compute(rank, 22, 24, {{op}});
  const Figures figures = run.Analyse();
  ASSERT_EQ(figures.boundaries.size(), 2U);
  // Three of four ranks wait: 8 · 3/4 and 4 · 3/4.
  EXPECT_DOUBLE_EQ(figures.boundaries[0].exposed_s, 6e-12);
  EXPECT_DOUBLE_EQ(figures.boundaries[0].worst_exposed_s, 8e-12);
  EXPECT_DOUBLE_EQ(figures.boundaries[1].exposed_s, 3e-12);
  EXPECT_EQ(figures.boundaries[0].bytes_forward, 64);
  ASSERT_EQ(figures.exposed.size(), 1U);
  EXPECT_EQ(figures.exposed[0].kind, "boundary_comm");
  EXPECT_DOUBLE_EQ(figures.exposed[0].seconds, 9e-12);
}

TEST(FiguresTest, MemoryNamesTheFullestRankOfARoleAndTheWorstRoleFirst) {
  RunBuilder run = OneRank(10);
  run.AddClass("vision", 2);
  // A second class of the first role, fuller than the first.
  run.header.classes.push_back({.representative = 7, .count = 5, .role = 0});
  run.trailer.memory = {{.rank_class = 0,
                         .peak_bytes = 50,
                         .device_bytes = 60,
                         .capacity_bytes = 100,
                         .verdict = "fits"},
                        {.rank_class = 1,
                         .peak_bytes = 100,
                         .device_bytes = 110,
                         .capacity_bytes = 100,
                         .verdict = "does_not_fit",
                         .moment = "backward",
                         .categories = {{"logits", 110}}},
                        {.rank_class = 2,
                         .peak_bytes = 80,
                         .device_bytes = 90,
                         .capacity_bytes = 100,
                         .verdict = "fits",
                         .categories = {{"activations", 60}, {"gradients", 10}, {"logits", 20}}}};
  const Figures figures = run.Analyse();
  ASSERT_EQ(figures.memory.size(), 2U);
  EXPECT_EQ(figures.memory[0].role, "vision");
  EXPECT_FALSE(figures.memory[0].fits());
  EXPECT_EQ(figures.memory[1].role, "llm.0");
  EXPECT_EQ(figures.memory[1].ranks, 6);
  EXPECT_EQ(figures.memory[1].fullest_rank, 7);
  EXPECT_EQ(figures.memory[1].peak_bytes, 90);
  EXPECT_EQ(figures.memory[1].lowest_peak_bytes, 60);
  EXPECT_EQ(figures.memory[1].categories[0].first, "activations");
  EXPECT_EQ(figures.memory[1].categories[1].first, "logits");
}

TEST(FiguresTest, TransfersBelongToTheEdgeOfBothSidesModules) {
  RunBuilder run;
  run.header.modules = {{.name = "vision"}, {.name = "audio"}, {.name = "llm"}};
  run.header.boundaries = {{"vision", "llm", "non-colocated equal", 64, 32},
                           {"audio", "llm", "non-colocated equal", 8, 8}};
  const auto audio = run.AddClass("audio.0", 1, {}, {1});
  const auto llm = run.AddClass("llm.0", 1, {}, {0});
  // The receive itself is the LLM's, which has an edge from each encoder.
  const auto made = run.Compute(audio, 0, 10);
  const auto sent = run.Transfer(audio, true, 0, 10, 10, 14, {{made}});
  const auto got = run.Transfer(llm, false, 0, 0, 10, 14);
  run.op(audio, sent).module = 1;
  run.op(llm, got).module = 2;
  run.op(audio, sent).category = traces::Category::kBoundaryComm;
  run.op(llm, got).category = traces::Category::kBoundaryComm;
  run.Compute(llm, 14, 20, {{got, 1}});
  const Figures figures = run.Analyse();
  EXPECT_EQ(figures.boundaries[0].exposed_s, 0);
  // Both ranks wait 4 ps: the LLM before its compute, the encoder at its end.
  EXPECT_DOUBLE_EQ(figures.boundaries[1].exposed_s, 4e-12);
}

TEST(FiguresTest, VariantsOfARoleAreShownAsOne) {
  RunBuilder run;
  const auto small = run.AddClass("llm.0", 1);
  const auto large = run.AddClass("llm.0", 3);
  run.Compute(small, 0, 4);
  run.Compute(large, 0, 8);
  run.trailer.memory = {{.rank_class = 0, .peak_bytes = 1}, {.rank_class = 1, .peak_bytes = 2}};
  const Figures figures = run.Analyse();
  ASSERT_EQ(figures.roles.size(), 1U);
  EXPECT_EQ(figures.roles[0].ranks, 4);
  // (4 + 3 · 8) / (4 · 8).
  EXPECT_DOUBLE_EQ(figures.roles[0].shares[0], 0.875);
  ASSERT_EQ(figures.memory.size(), 1U);
  EXPECT_EQ(figures.memory[0].ranks, 4);
  EXPECT_EQ(figures.memory[0].peak_bytes, 2);
}

TEST(FiguresTest, EventsThatTheHeaderDoesNotKnowAreErrors) {
  RunBuilder run = OneRank(10);
  run.events.push_back({0, 5, 0, 0, 0, 1});
  EXPECT_THROW(run.Analyse(), base::Error);
  run.events.back() = {3, 0, 0, 0, 0, 1};
  EXPECT_THROW(run.Analyse(), base::Error);
}

TEST(FiguresTest, AnEmptyRunHasNoTimes) {
  RunBuilder run;
  const Figures figures = run.Analyse();
  EXPECT_EQ(figures.step_time_s, 0);
  EXPECT_TRUE(figures.critical_path.empty());
}

}  // namespace
}  // namespace isthmus::reports
