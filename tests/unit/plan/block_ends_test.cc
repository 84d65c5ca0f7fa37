#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/model/layers.h"
#include "tests/support/model_catalogue.h"
#include "tests/support/work_sums.h"

namespace isthmus::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using tests::GemmFlops;
using tests::MovedBytes;
using tests::SegmentNames;

constexpr std::int64_t kTokens = 4096;

BlockShape Only(const Module& module, Block block, int tp = 1) {
  BlockShape shape;
  shape.module = &module;
  shape.block = block;
  shape.tp = tp;
  shape.tokens = kTokens;
  shape.span = kTokens;
  return shape;
}

TEST(BlockEndsTest, TheVocabularyIsPaddedTo128PerRank) {
  EXPECT_EQ(PaddedVocabulary(128256, 1), 128256);  // 1002 · 128
  EXPECT_EQ(PaddedVocabulary(128256, 8), 129024);  // 126 · 1024
  EXPECT_EQ(PaddedVocabulary(50257, 1), 50304);
  EXPECT_EQ(PaddedVocabulary(0, 4), 0);
}

// GEMM over the padded vocabulary; the model needs the unpadded one.
TEST(BlockEndsTest, HeadIsThreeGemmsAndTheLossTraffic) {
  Module llm = tests::Llama("llm", 2, 4096, 14336, 32);
  const BlockShape shape = Only(llm, {.head = true}, 8);
  const Work forward = DescribeWork(shape, Action::kForward);
  EXPECT_DOUBLE_EQ(GemmFlops(forward), 2.0 * kTokens * 4096 * 129024 / 8);
  EXPECT_DOUBLE_EQ(forward.model_flops.value(), 2.0 * kTokens * 4096 * 128256 / 8);
  const Work backward = DescribeWork(shape, Action::kBackward);
  EXPECT_DOUBLE_EQ(GemmFlops(backward), 2 * GemmFlops(forward));
  const auto traffic = [&] {
    return MovedBytes(DescribeWork(shape, Action::kForward), MemoryClass::kCrossEntropy) +
           MovedBytes(DescribeWork(shape, Action::kBackward), MemoryClass::kCrossEntropy);
  };
  EXPECT_EQ(traffic(), 34 * kTokens * 129024 / 8);
  EXPECT_NEAR(static_cast<double>(MovedBytes(forward, MemoryClass::kCrossEntropy)),
              0.65 * 34 * kTokens * 129024 / 8, 1.0);
  llm.settings.loss = LossKernel::kUnfused;
  EXPECT_EQ(traffic(), 50 * kTokens * 129024 / 8);
}

TEST(BlockEndsTest, EmbeddingMovesTwelveBytesAnElementBothWaysTogether) {
  const Module llm = tests::Llama("llm", 2, 4096, 14336, 32);
  const BlockShape shape = Only(llm, {.stem = true});
  const Work forward = DescribeWork(shape, Action::kForward);
  const Work backward = DescribeWork(shape, Action::kBackward);
  EXPECT_EQ(MovedBytes(forward, MemoryClass::kElementwise) +
                MovedBytes(backward, MemoryClass::kElementwise),
            12 * kTokens * 4096);
  EXPECT_THAT(SegmentNames(DescribeWork(Only(llm, {.stem = true}, 2), Action::kForward)),
              ElementsAre("embedding", "embedding scatter"));
}

// 3 · 14² = 588 wide patches; no gradient of pixels, so one GEMM each way.
TEST(BlockEndsTest, PatchEmbeddingIsOneGemmEachWay) {
  Module vit = tests::Encoder("vit", 2, 1408, 16);
  const BlockShape shape = Only(vit, {.stem = true});
  EXPECT_TRUE(DescribeWork(shape, Action::kForward).parts.empty());  // no input width, no stem
  vit.input_width = 588;
  vit.span_tokens = 1024;
  EXPECT_DOUBLE_EQ(GemmFlops(DescribeWork(shape, Action::kForward)), 2.0 * kTokens * 588 * 1408);
  EXPECT_DOUBLE_EQ(GemmFlops(DescribeWork(shape, Action::kBackward)), 2.0 * kTokens * 588 * 1408);
  // Patches and one position vector for each of a span's tokens.
  EXPECT_EQ(RankParameters(shape), 588 * 1408 + 1024 * 1408);
}

BlockShape WithProjector(const Module& module, int tp) {
  BlockShape shape = Only(module, {.projector = true}, tp);
  shape.projector_in = 5632;  // pixel shuffle: four tokens of 1408 side by side
  shape.projector_out = 4096;
  shape.projector_tokens = 1024;
  return shape;
}

TEST(BlockEndsTest, ProjectorRunsOnTheTokensItMaps) {
  Module vit = tests::Encoder("vit", 2, 1408, 16);
  vit.projector = Projector{.num_layers = 2, .hidden = 8192};
  const BlockShape shape = WithProjector(vit, 1);
  const double one_pass = 2.0 * 1024 * (5632.0 * 8192 + 8192.0 * 4096);
  EXPECT_DOUBLE_EQ(GemmFlops(DescribeWork(shape, Action::kForward)), one_pass);
  const Work backward = DescribeWork(shape, Action::kBackward);
  EXPECT_DOUBLE_EQ(GemmFlops(backward), 2 * one_pass);
  EXPECT_DOUBLE_EQ(backward.model_flops.value(), 2 * one_pass);
  EXPECT_EQ(RankParameters(shape), 5632 * 8192 + 8192 * 4096);
  // The boundary tensor is whole on every rank.
  EXPECT_EQ(ActivationBytes(shape).value(), 2 * 1024 * 4096);
}

// A frozen encoder behind which a projector is trained: no layer backward, and the projector's
// first dgrad has nobody to go to.
TEST(BlockEndsTest, ATrainedProjectorOfAFrozenEncoderStopsAtItsOwnWeights) {
  Module vit = tests::Encoder("vit", 2, 1408, 16);
  vit.projector = Projector{.num_layers = 2, .hidden = 8192};
  BlockShape shape = WithProjector(vit, 1);
  shape.block.num_layers = 2;
  shape.needs_input_gradient = shape.needs_weight_gradient = false;
  const Work backward = DescribeWork(shape, Action::kBackward);
  EXPECT_DOUBLE_EQ(GemmFlops(backward), 2.0 * 1024 * (5632.0 * 8192 + 2 * 8192.0 * 4096));
  EXPECT_DOUBLE_EQ(backward.model_flops.value(), GemmFlops(backward));
  vit.projector->frozen = true;
  EXPECT_THAT(DescribeWork(shape, Action::kBackward).parts, IsEmpty());
}

// A frozen LLM behind a trained projector of its own still runs its backward-input.
TEST(BlockEndsTest, ATrainedProjectorInFrontMakesAFrozenLlmPassGradients) {
  const Module llm = tests::Llama("llm", 2, 4096, 14336, 32);
  const Projector projector{.num_layers = 1, .hidden = 0, .place = Projector::Place::kWithLlm};
  BlockShape shape = WithProjector(llm, 1);
  shape.block.num_layers = 2;
  shape.projector = &projector;
  shape.needs_input_gradient = shape.needs_weight_gradient = false;
  const Work forward = DescribeWork(shape, Action::kForward);
  const Work backward = DescribeWork(shape, Action::kBackward);
  EXPECT_DOUBLE_EQ(GemmFlops(backward), GemmFlops(forward));  // layers' dgrad, projector's wgrad
  EXPECT_STREQ(forward.parts.front().segments.front().name, "projector");
  EXPECT_STREQ(backward.parts.back().segments.back().name, "projector wgrad");
}

// Under sequence parallelism the gradient of a boundary tensor is made whole on every rank, whether
// the embedding is trained or not.
TEST(BlockEndsTest, AFrozenEmbeddingGathersWhatItHandsOn) {
  Module llm = tests::Llama("llm", 2, 4096, 14336, 32);
  BlockShape shape = Only(llm, {.stem = true}, 2);
  shape.needs_weight_gradient = false;
  EXPECT_THAT(SegmentNames(DescribeWork(shape, Action::kBackward)),
              ElementsAre("embedding gather"));
  llm.settings.sequence_parallel = false;
  EXPECT_THAT(DescribeWork(shape, Action::kBackward).parts, IsEmpty());
  llm.settings.sequence_parallel = true;
  shape.needs_input_gradient = false;
  EXPECT_THAT(DescribeWork(shape, Action::kBackward).parts, IsEmpty());
}

TEST(BlockEndsTest, ATiedHeadOnTheEmbeddingsRankHasNoWeights) {
  Module gpt = tests::Gpt("gpt", 2, 1024, 16, 51200);
  const std::int64_t table = std::int64_t{51200} * 1024;
  EXPECT_EQ(RankParameters(Only(gpt, {.head = true})), table + 2 * std::int64_t{1024});
  EXPECT_EQ(RankParameters(Only(gpt, {.head = true, .head_shares_stem = true})),
            2 * std::int64_t{1024});
  EXPECT_EQ(RankParameters(Only(gpt, {.stem = true, .head = true})),
            table + 2 * std::int64_t{1024});
  gpt.transformer.tied_embeddings = false;
  EXPECT_EQ(RankParameters(Only(gpt, {.stem = true, .head = true})),
            2 * table + 2 * std::int64_t{1024});
}

TEST(BlockEndsTest, RankParametersOfAllBlocksAreTheModulesParameters) {
  const Module llm = tests::Llama("llm", 32, 4096, 14336, 32);
  const BlockShape shape = Only(llm, {.num_layers = 32, .stem = true, .head = true});
  EXPECT_EQ(RankParameters(shape), TotalParameters(llm.transformer));
  EXPECT_EQ(ReplicatedParameters(shape), std::int64_t{65} * 4096);
  // Over tp 2 everything but the norms is halved (128,256 is 501 · 256, so no padding).
  BlockShape half = shape;
  half.tp = 2;
  EXPECT_EQ(2 * RankParameters(half), TotalParameters(llm.transformer) + std::int64_t{65} * 4096);
}

}  // namespace
}  // namespace isthmus::plan
