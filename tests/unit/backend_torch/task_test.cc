#include "backend/torch/data/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/data/sample_batches.h"
#include "base/error.h"
#include "tests/support/program_jobs.h"

namespace isthmus::tests {
namespace {

using backend::MakeTask;
using backend::Sample;
using backend::SampleShape;
using ::testing::HasSubstr;

// Two images of 2 · 2 patches of 2 · 2 pixels in colour, one clip of 4 frames of 8 bands.
SampleShape Shape() {
  return {
      .sequence_length = 32,
      .vocabulary = 64,
      .encoders = {{plan::ModuleKind::kVit, 8, 4, 4, 12}, {plan::ModuleKind::kAudio, 4, 4, 4, 8}}};
}

bool Same(const Sample& a, const Sample& b) {
  return a.tokens.equal(b.tokens) && a.labels.equal(b.labels) && a.loss_mask.equal(b.loss_mask) &&
         a.patches[0].equal(b.patches[0]) && a.patches[1].equal(b.patches[1]);
}

TEST(Captions, ASampleIsAFunctionOfSeedAndNumber) {
  const auto task = MakeTask("captions", Shape(), {.seed = 5});
  const Sample third = task->Draw(3);
  EXPECT_FALSE(Same(task->Draw(4), third));
  EXPECT_TRUE(Same(task->Draw(3), third));
  EXPECT_TRUE(Same(MakeTask("captions", Shape(), {.seed = 5})->Draw(3), third));
  EXPECT_FALSE(Same(MakeTask("captions", Shape(), {.seed = 6})->Draw(3), third));
}

TEST(Captions, OnlyTheAnswerBehindPlaceholdersAndQuestionCounts) {
  const Sample sample = MakeTask("captions", Shape(), {})->Draw(0);
  EXPECT_EQ(sample.placeholders[0].sum().item<int>(), 4);
  EXPECT_EQ(sample.placeholders[1].sum().item<int>(), 4);
  // Begin, 4 + 4 placeholders, and the question on position 9, which predicts the first word. Two
  // images have 5 words each, the clip 3, then the end: 14 words, predicted on 9 … 22.
  EXPECT_EQ(sample.loss_mask.sum().item<int>(), 14);
  EXPECT_EQ(sample.loss_mask.slice(0, 9, 23).sum().item<int>(), 14);
  // Labels are the next tokens.
  EXPECT_TRUE(sample.labels.slice(0, 0, 31).equal(sample.tokens.slice(0, 1, 32)));
}

TEST(Captions, TextOnlySamplesCountAndShowNothing) {
  const auto task = MakeTask("captions", Shape(), {.text_only_fraction = 0.5});
  int text_only = 0;
  for (int index = 0; index < 200; ++index) {
    const Sample sample = task->Draw(index);
    if (!sample.text_only) continue;
    ++text_only;
    EXPECT_FALSE(sample.placeholders[0].any().item<bool>());
    EXPECT_EQ(sample.patches[0].abs().max().item<float>(), 0.0F);
    EXPECT_TRUE(sample.loss_mask.slice(0, 2).all().item<bool>());
  }
  // 200 draws of one half: 100 with a standard deviation of 7.
  EXPECT_NEAR(text_only, 100, 35);
}

TEST(Task, ShapesWithoutRoomAreRefused) {
  SampleShape shape = Shape();
  shape.sequence_length = 10;
  EXPECT_THAT([&] { MakeTask("captions", shape, {}); },
              testing::ThrowsMessage<base::Error>(HasSubstr("sequence_length of at least 11")));
  shape = Shape();
  shape.vocabulary = 16;
  EXPECT_THAT([&] { MakeTask("captions", shape, {}); },
              testing::ThrowsMessage<base::Error>(HasSubstr("the decoder's vocabulary 16")));
  EXPECT_THAT([&] { MakeTask("mnist", shape, {}); },
              testing::ThrowsMessage<base::Error>(HasSubstr("there are captions and random")));
}

plan::Job SmallImages(plan::Placement placement, const plan::Layout& encoder,
                      const plan::Layout& llm) {
  plan::Module vision = EncoderOf("vision", encoder);
  vision.tokens_per_sample = 8;
  vision.llm_tokens_per_sample = 8;
  vision.span_tokens = 4;
  vision.input_width = 12;
  plan::Job job = JobOf(placement, {vision, LlmOf(llm, 2)}, 2);
  job.workload = {.sequence_length = 32, .global_batch = 4, .microbatch_size = 1};
  return job;
}

backend::SampleBatches BatchesOf(const plan::Program& program) {
  return {program, MakeTask("captions", backend::ShapeOfSamples(program), {.seed = 1})};
}

TEST(SampleBatches, EncoderLanesTogetherHoldTheImagesOfTheStepInOrder) {
  const plan::Program program =
      plan::Build(SmallImages(plan::Placement::kColocated, {.dp = 4}, {.tp = 2, .dp = 2}));
  std::vector<at::Tensor> lanes;
  for (int rank = 0; rank < 4; ++rank) {
    backend::SampleBatches batches = BatchesOf(program);
    lanes.push_back(
        batches.Get({.module = 0, .rank = base::Rank{rank}, .step = 1, .microbatch = -1}).patches);
  }
  // The second step takes samples 4 … 7.
  const auto task = MakeTask("captions", backend::ShapeOfSamples(program), {.seed = 1});
  std::vector<at::Tensor> expected;
  for (int sample = 4; sample < 8; ++sample) expected.push_back(task->Draw(sample).patches[0]);
  EXPECT_TRUE(
      at::cat(lanes).to(at::kFloat).equal(at::cat(expected).to(at::kBFloat16).to(at::kFloat)));
}

TEST(SampleBatches, ShardsOfTheDecoderHoldConsecutiveSamples) {
  const plan::Program program =
      plan::Build(SmallImages(plan::Placement::kColocated, {.dp = 4}, {.tp = 2, .dp = 2}));
  const auto task = MakeTask("captions", backend::ShapeOfSamples(program), {.seed = 1});
  backend::SampleBatches batches = BatchesOf(program);
  // Rank 3 is of the second shard: samples 2 and 3.
  const backend::BlockData data =
      batches.Get({.module = 1, .rank = base::Rank{3}, .step = 0, .microbatch = 1});
  EXPECT_TRUE(data.tokens[0].equal(task->Draw(3).tokens));
  EXPECT_TRUE(data.placeholders[0][0].equal(task->Draw(3).placeholders[0]));
}

}  // namespace
}  // namespace isthmus::tests
