#include "plan/model/saved_tensors.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plan/model/framework.h"
#include "plan/model/layers.h"
#include "tests/support/model_catalogue.h"

namespace isthmus::plan {
namespace {

constexpr std::int64_t kTokens = 4096;
constexpr std::int64_t kHidden = 8192;    // of all models here but the smallest
constexpr std::int64_t kStatistics = 16;  // B a token for the two norms

BlockShape Layers(const Module& module, int num_layers, int tp) {
  BlockShape shape;
  shape.module = &module;
  shape.block.num_layers = num_layers;
  shape.tp = tp;
  shape.tokens = kTokens;
  shape.span = kTokens;
  return shape;
}

// modelling_memory §2: 10h/S + 24h/TP with dropout and flash, plus log-sum-exp 4a/TP and
// statistics.
TEST(SavedTensorsTest, PlainLayerWithDropoutKeepsTenAndTwentyFourBytes) {
  Module gpt = tests::Gpt("gpt", 1, 8192, 64, 128000);
  gpt.transformer.hidden_dropout = 0.1;
  for (const int tp : {1, 2, 8}) {
    gpt.settings.sequence_parallel = true;
    EXPECT_EQ(ContextBytes(Layers(gpt, 1, tp)).value(),
              kTokens * (34 * kHidden + 4 * std::int64_t{64} + kStatistics) / tp);
    gpt.settings.sequence_parallel = false;
    EXPECT_EQ(ContextBytes(Layers(gpt, 1, tp)).value(),
              kTokens * (10 * kHidden + kStatistics + (24 * kHidden + 4 * std::int64_t{64}) / tp));
  }
}

// 8h + 2(q + 2k) + 2q + 6f with k = h/8, f = 3.5h: 33.5 h.
TEST(SavedTensorsTest, Llama70bKeepsThirtyThreeAndAHalfBytes) {
  const Module llama = tests::Llama("70b", 80, 8192, 28672, 64);
  EXPECT_EQ(ContextBytes(Layers(llama, 1, 1)).value(),
            kTokens * (33 * kHidden + kHidden / 2 + 4 * std::int64_t{64} + kStatistics));
  EXPECT_EQ(ContextBytes(Layers(llama, 7, 1)).value(),
            7 * ContextBytes(Layers(llama, 1, 1)).value());
}

// fp8: norm outputs and activation output at one byte, an fp8 copy of the attention output besides.
TEST(SavedTensorsTest, Fp8KeepsGemmInputsInOneByte) {
  Module llama = tests::Llama("70b", 80, 8192, 28672, 64);
  const std::int64_t bf16 = ContextBytes(Layers(llama, 1, 1)).value();
  llama.settings.precision = DType::kFp8;
  EXPECT_EQ(ContextBytes(Layers(llama, 1, 1)).value(),
            bf16 - kTokens * (2 * kHidden - kHidden + 28672));
}

// 5 B per head, query and key with dropout, 2 B without; no log-sum-exp.
TEST(SavedTensorsTest, UnfusedAttentionKeepsItsMatrix) {
  Module gpt = tests::Gpt("gpt", 1, 2048, 16, 51200);
  gpt.settings.attention = AttentionKernel::kUnfused;
  const std::int64_t matrix = 16 * kTokens * kTokens;
  EXPECT_EQ(ContextBytes(Layers(gpt, 1, 1)).value(),
            kTokens * (32 * std::int64_t{2048} + kStatistics) + 2 * matrix);
  gpt.transformer.hidden_dropout = 0.1;
  EXPECT_EQ(ContextBytes(Layers(gpt, 1, 1)).value(),
            kTokens * (34 * std::int64_t{2048} + kStatistics) + 5 * matrix);
  // Selective recompute is made for this: the matrix goes.
  gpt.settings.recompute = Recompute::kSelective;
  EXPECT_EQ(ContextBytes(Layers(gpt, 1, 1)).value(),
            kTokens * (34 * std::int64_t{2048} + kStatistics));
}

TEST(SavedTensorsTest, FullRecomputeKeepsTheLayersInputs) {
  Module llama = tests::Llama("70b", 80, 8192, 28672, 64);
  llama.settings.recompute = Recompute::kFull;
  const std::int64_t layer = ContextBytes(Layers(llama, 1, 8)).value();
  EXPECT_EQ(CheckpointBytes(Layers(llama, 5, 8)).value(), 5 * kTokens * 2 * kHidden / 8);
  llama.settings.recompute_layers = 2;
  EXPECT_EQ(CheckpointBytes(Layers(llama, 5, 8)).value(),
            2 * kTokens * 2 * kHidden / 8 + 3 * layer);
}

TEST(SavedTensorsTest, FrozenLayersKeepNoGemmInputs) {
  const Module llama = tests::Llama("70b", 80, 8192, 28672, 64);
  BlockShape shape = Layers(llama, 1, 1);
  const std::int64_t trained = ContextBytes(shape).value();
  shape.needs_weight_gradient = false;
  // Both norm outputs and the activation output; the attention output stays for the attention.
  EXPECT_EQ(ContextBytes(shape).value(),
            trained - kTokens * (4 * kHidden + 2 * std::int64_t{28672}));
}

TEST(SavedTensorsTest, LogitBytesFollowTheLoss) {
  Module llama = tests::Llama("8b", 32, 4096, 14336, 32);
  BlockShape shape = Layers(llama, 1, 2);
  EXPECT_EQ(LogitBytes(shape).value(), 0);
  shape.block.head = true;
  const std::int64_t logits = kTokens * 128256 / 2;
  EXPECT_EQ(LogitBytes(shape).value(), 6 * logits);
  llama.settings.loss = LossKernel::kUnfused;
  EXPECT_EQ(LogitBytes(shape).value(), 10 * logits);
  llama.settings.loss = LossKernel::kInPlace;
  EXPECT_EQ(LogitBytes(shape).value(), 2 * logits);
}

void RunAs(const char* release, Module& module) {
  module.settings = DefaultSettings(*FindRelease(release));
}

// modelling_memory §2, nanotron: norm outputs gathered 4h; q pins 2(q+2k)/tp beside a copy of k and
// v, 4k/tp; SiLU and product 2f/tp each beside gate and up, 4f/tp; with two samples the attention
// output twice. MHA: k = q = h, f = 2h here: 8h whole and sharded, (6 + 4 + 2 + 16)h/tp.
TEST(SavedTensorsTest, NanotronKeepsGatheredNormsAndCopies) {
  Module llama = tests::Llama("1b", 24, 2048, 4096, 16, 16);
  RunAs("nanotron", llama);
  const std::int64_t h = 2048;
  BlockShape shape = Layers(llama, 1, 2);
  const std::int64_t one = kTokens * (4 * h / 2 + 4 * h + (6 + 4 + 2 + 16) * h / 2 + 4 * 16 / 2);
  EXPECT_EQ(ContextBytes(shape).value(), one);
  shape.span = kTokens / 2;  // two samples
  EXPECT_EQ(ContextBytes(shape).value(), one + kTokens * 2 * h / 2);
  EXPECT_EQ(PlaceholderBytes(shape).value(), 0);
}

// Eager Llama: gate and up 4f, SiLU 2f, product 2f; without a fused norm 2·(4 + 4 + 2)h more.
TEST(SavedTensorsTest, EagerLlamaCopiesWhatNoKernelFuses) {
  Module llama = tests::Llama("13b", 40, 5120, 13824, 40, 40);
  RunAs("llama-eager-fused-norm", llama);
  const std::int64_t h = 5120;
  const std::int64_t fused = kTokens * (8 * h + 6 * h + 2 * h + 8 * std::int64_t{13824} + 4 * 40);
  EXPECT_EQ(ContextBytes(Layers(llama, 1, 1)).value(), fused);
  RunAs("llama-eager", llama);
  EXPECT_EQ(ContextBytes(Layers(llama, 1, 1)).value(), fused + kTokens * 20 * h);
}

// An exchange of heads keeps the attention output before and behind it.
TEST(SavedTensorsTest, ExchangeOfHeadsKeepsTheOutputTwice) {
  Module llama = tests::Llama("70b", 80, 8192, 28672, 64);
  BlockShape shape = Layers(llama, 1, 2);
  shape.cp = 4;
  const std::int64_t ring = ContextBytes(shape).value();
  llama.settings.context_parallel = ContextParallel::kAllToAll;
  EXPECT_EQ(ContextBytes(shape).value(), ring + kTokens * 2 * kHidden / 2);
}

// The whole vocabulary at 16 B a logit, and the rank's own 16-bit logits.
TEST(SavedTensorsTest, AGatheredLossIsNotDividedByTp) {
  Module llama = tests::Llama("13b", 40, 5120, 13824, 40, 40);
  RunAs("llama-eager", llama);
  BlockShape shape = Layers(llama, 1, 4);
  shape.block.head = true;
  EXPECT_EQ(LogitBytes(shape).value(),
            16 * kTokens * 128256 + 2 * kTokens * std::int64_t{128256} / 4);
}

// fp8 beside 16-bit weights: two copies of the layers' matrices. With fp8 primary weights 2 B of
// every parameter in all, one of which is the weight itself.
TEST(SavedTensorsTest, Fp8WeightsHaveCopies) {
  Module llama = tests::Llama("70b", 80, 8192, 28672, 64);
  EXPECT_EQ(WeightCopyBytes(Layers(llama, 3, 1)).value(), 0);
  llama.settings.precision = DType::kFp8;
  EXPECT_EQ(WeightCopyBytes(Layers(llama, 3, 1)).value(),
            2 * 3 * LayerMatrixParameters(llama.transformer));
  llama.settings.fp8_primary_weights = true;
  EXPECT_EQ(WeightCopyBytes(Layers(llama, 3, 1)).value(), 3 * LayerParameters(llama.transformer));
}

// modelling_memory §4: which moment an op's transient is of.
TEST(SavedTensorsTest, WorksNameTheirMoment) {
  Module llama = tests::Llama("8b", 32, 4096, 14336, 32);
  BlockShape shape = Layers(llama, 4, 1);
  const auto moment = [&](Action action) { return DescribeWork(shape, action).moment; };
  EXPECT_EQ(moment(Action::kForward), MemoryMoment::kForward);
  EXPECT_EQ(moment(Action::kBackward), MemoryMoment::kTurn);
  shape.block.head = true;
  EXPECT_EQ(moment(Action::kBackward), MemoryMoment::kLoss);
  shape.block.head = false;
  llama.settings.recompute = Recompute::kFull;
  EXPECT_EQ(moment(Action::kBackward), MemoryMoment::kRecompute);
  // Few tokens: the embedding's gradient, 2·V·h, is more than all the layers keep.
  llama.settings.recompute = Recompute::kNone;
  shape.block.stem = true;
  shape.tokens = 16;
  shape.span = 16;
  EXPECT_EQ(moment(Action::kBackward), MemoryMoment::kEndOfBackward);
}

// Measured peaks (max allocated) of Megatron-Core with Transformer Engine: reduced Llama-3 70B and
// 405B, 4,096 tokens, in-place loss, fp32 gradients, distributed optimizer over dp (memory_points
// M0082 … M0109). Peak of a stage as in modelling_memory §4; 96 MiB of workspace and tables.
struct MeasuredPeak {
  const char* name;
  Module module;
  int tp, pp, dp;
  double measured_gib;
};

double PeakGib(const MeasuredPeak& row, int stage) {
  const int layers = row.module.transformer.num_layers / row.pp;
  BlockShape shape = Layers(row.module, layers, row.tp);
  shape.block.stem = stage == 0;
  shape.block.head = stage == row.pp - 1;
  const double parameters = static_cast<double>(RankParameters(shape));
  const auto in_flight = static_cast<double>(row.pp - stage);
  const double total =
      parameters * (2 + 4 + 12.0 / row.dp) + static_cast<double>(PlaceholderBytes(shape).value()) +
      in_flight * static_cast<double>(ContextBytes(shape).value()) +
      static_cast<double>(LogitBytes(shape).value()) +
      static_cast<double>(DescribeWork(shape, Action::kBackward).transient_bytes.value()) +
      96.0 * (1 << 20);
  return total / (1 << 30);
}

TEST(SavedTensorsTest, MeasuredPeaksAreMetWithinTwoTenthsOfAPercent) {
  const Module llama70 = tests::Llama("70b", 12, 8192, 28672, 64);
  const Module llama405 = tests::Llama("405b", 4, 16384, 53248, 128, 16);  // the runs' 16 groups
  const MeasuredPeak rows[] = {
      {"M0082", llama70, 1, 2, 4, 66.55},  {"M0083", llama70, 2, 1, 4, 60.68},
      {"M0084", llama70, 4, 1, 2, 39.07},  {"M0085", llama70, 8, 1, 1, 28.29},
      {"M0106", llama405, 1, 2, 4, 87.08}, {"M0107", llama405, 2, 1, 4, 81.59},
      {"M0108", llama405, 4, 1, 2, 52.89}, {"M0109", llama405, 8, 1, 1, 38.57}};
  for (MeasuredPeak row : rows) {
    row.module.settings.loss = LossKernel::kInPlace;
    double peak = 0;
    for (int stage = 0; stage < row.pp; ++stage) peak = std::max(peak, PeakGib(row, stage));
    EXPECT_NEAR(peak / row.measured_gib, 1.0, 0.002) << row.name << ": " << peak;
  }
}

}  // namespace
}  // namespace isthmus::plan
