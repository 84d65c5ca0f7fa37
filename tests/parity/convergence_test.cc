#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/parity/expect_parity.h"

// Short runs of what scripts/convergence.py trains for longer.
namespace isthmus::tests {
namespace {

using plan::Placement;

/// A row of the paper's sweeps A7 (LLM frozen) and A8 (trained); the vision encoder is frozen, its
/// projector trained.
struct SweepRow {
  std::string id;
  bool frozen = false;
  Placement placement = Placement::kColocated;
  plan::Layout vision;
  plan::Layout llm;
};

std::vector<SweepRow> ReadRows() {
  std::ifstream file(ISTHMUS_SOURCE_DIR "/tests/data/convergence_layouts.csv");
  std::vector<SweepRow> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::ranges::replace(line, ',', ' ');
    std::istringstream words(line);
    SweepRow& row = rows.emplace_back();
    std::string llm;
    std::string mode;
    words >> row.id >> llm >> mode >> row.vision.tp >> row.vision.dp >> row.llm.tp >> row.llm.pp >>
        row.llm.dp;
    row.frozen = llm == "frozen";
    row.placement = mode == "colocated" ? Placement::kColocated : Placement::kNonColocated;
  }
  return rows;
}

/// All of A8, and of A7 the rows with layouts that A8 lacks: every layout once.
std::vector<SweepRow> DistinctRows() {
  std::vector<SweepRow> distinct;
  const auto same_layouts = [](const SweepRow& a, const SweepRow& b) {
    return a.placement == b.placement && a.vision == b.vision && a.llm == b.llm;
  };
  std::vector<SweepRow> rows = ReadRows();
  std::ranges::stable_sort(rows, {}, &SweepRow::frozen);
  for (const SweepRow& row : rows) {
    if (std::ranges::none_of(distinct, [&](const SweepRow& b) { return same_layouts(row, b); })) {
      distinct.push_back(row);
    }
  }
  return distinct;
}

/// Losses of three steps with a frozen encoder; a batch of 8 in two microbatches, or one a stage.
std::vector<double> Losses(Placement placement, plan::Module vision, plan::Module llm,
                           bool frozen) {
  const plan::Layout layout = *llm.layout;
  vision.settings.frozen = true;
  llm.settings.frozen = frozen;
  llm.transformer.num_layers = 4;  // PP4
  ParityRun run{.job = ParityJob(placement, {vision, llm}, plan::DType::kFp32),
                .training = ParityTraining(),
                .num_steps = 3};
  run.job.workload.global_batch = 8;  // DP8
  run.job.workload.microbatch_size = std::max(1, 8 / (layout.dp * std::max(2, layout.pp)));
  run.training.learning_rate.peak = 5e-3;
  return LossesOf(run);
}

void ExpectLossesOfTheHomogeneousRun(bool frozen) {
  const std::vector<double> expected =
      Losses(Placement::kHomogeneous, TinyEncoder("vision"), TinyLlm({.tp = 4}), frozen);
  int num_rows = 0;
  for (const SweepRow& row : DistinctRows()) {
    if (row.frozen != frozen) continue;
    SCOPED_TRACE(row.id);
    ++num_rows;
    const std::vector<double> losses =
        Losses(row.placement, TinyEncoder("vision", row.vision), TinyLlm(row.llm), frozen);
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t step = 0; step < losses.size(); ++step) {
      EXPECT_NEAR(losses[step], expected[step], 1e-5);  // FP32
    }
  }
  // A8 has 8 layouts in two placements; 4 of A7's are not among them.
  EXPECT_EQ(num_rows, frozen ? 8 : 16);
}

TEST(ConvergenceOfLayouts, IsTheHomogeneousRunsWithATrainedLlm) {
  ExpectLossesOfTheHomogeneousRun(/*frozen=*/false);
}
TEST(ConvergenceOfLayouts, IsTheHomogeneousRunsWithAFrozenLlm) {
  ExpectLossesOfTheHomogeneousRun(/*frozen=*/true);
}

/// Half precision learns beside FP32: from the same loss, step by step within what 8 bits of
/// mantissa leave, and to the same end. BF16 keeps 8 bits (2⁻⁸ = 0.004 a value), FP16 11.
TEST(Convergence, OfHalfPrecisionIsThatOfFp32) {
  const auto losses_in = [](plan::DType precision) {
    ParityRun run{.job = ParityJob(Placement::kColocated,
                                   {TinyEncoder("vision", {.dp = 4}), TinyLlm({.tp = 2, .dp = 2})},
                                   precision),
                  .training = ParityTraining(),
                  .num_steps = 16};
    run.training.loss_scaling.initial_scale = 1024.0;  // no step is left out
    return LossesOf(run);
  };
  const std::vector<double> fp32 = losses_in(plan::DType::kFp32);
  ASSERT_LT(fp32.back(), fp32.front() - 1.0);
  for (const auto& [precision, most] :
       {std::pair{plan::DType::kBf16, 0.05}, std::pair{plan::DType::kFp16, 0.02}}) {
    const std::vector<double> losses = losses_in(precision);
    double worst = 0.0;
    for (std::size_t step = 0; step < fp32.size(); ++step) {
      worst = std::max(worst, std::abs(losses[step] - fp32[step]));
    }
    std::printf("[  PARITY  ] %s: at most %.1e from FP32 (%.3f to %.3f)\n", plan::ToText(precision),
                worst, losses.front(), losses.back());
    EXPECT_LT(worst, most);
    EXPECT_GT(worst, 0.0);
  }
}

}  // namespace
}  // namespace isthmus::tests
