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

// Batches of three samples: text alone, two images without a clip, and one image with a clip.
SampleShape UnevenShape() {
  SampleShape shape = Shape();
  shape.encoders[0].spans_of_sample = {0, 2, 1};
  shape.encoders[1].spans_of_sample = {0, 0, 1};
  return shape;
}

TEST(Captions, TextOnlySamplesCountAndShowNothing) {
  const auto task = MakeTask("captions", UnevenShape(), {});
  for (const int index : {0, 3}) {
    const Sample sample = task->Draw(index);
    EXPECT_TRUE(sample.text_only());
    EXPECT_FALSE(sample.placeholders[0].any().item<bool>());
    EXPECT_EQ(sample.patches[0].sizes(), (std::vector<std::int64_t>{0, 12}));
    EXPECT_EQ(sample.patches[1].sizes(), (std::vector<std::int64_t>{0, 8}));
    EXPECT_TRUE(sample.loss_mask.slice(0, 2).all().item<bool>());
  }
}

TEST(Captions, SamplesShowAsManyImagesAsTheirPlaceInTheBatchSays) {
  const auto task = MakeTask("captions", UnevenShape(), {});
  const Sample images = task->Draw(4);
  EXPECT_FALSE(images.text_only());
  EXPECT_EQ(images.patches[0].size(0), 8);
  EXPECT_EQ(images.patches[1].size(0), 0);
  EXPECT_EQ(images.placeholders[0].sum().item<int>(), 4);
  EXPECT_FALSE(images.placeholders[1].any().item<bool>());
  EXPECT_EQ(images.loss_mask.sum().item<int>(), 11);  // 5 words an image, and the end
  const Sample both = task->Draw(2);
  EXPECT_EQ(both.patches[0].size(0), 4);
  EXPECT_EQ(both.placeholders[0].sum().item<int>(), 2);
  EXPECT_EQ(both.loss_mask.sum().item<int>(), 9);  // 5 words, 3 of the clip, and the end
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

TEST(SampleBatches, APlaceHoldsTheSampleThatTheOrderSays) {
  plan::Job job = SmallImages(plan::Placement::kColocated, {.dp = 4}, {.tp = 2, .dp = 2});
  job.modules[0].spans_of_sample = {2, 0, 1, 2};  // by place
  job.workload.sample_order = {0, 2, 3, 1};
  const plan::Program program = plan::Build(job);
  const backend::SampleShape shape = backend::ShapeOfSamples(program);
  EXPECT_EQ(shape.encoders[0].spans_of_sample, (std::vector<std::int32_t>{2, 2, 0, 1}));
  const auto task = MakeTask("captions", shape, {.seed = 1});
  backend::SampleBatches batches = BatchesOf(program);
  // Rank 3 is of the second shard, whose places 2 and 3 have samples 3 and 1; of the second step.
  const backend::BlockData data =
      batches.Get({.module = 1, .rank = base::Rank{3}, .step = 1, .microbatch = 1});
  EXPECT_TRUE(data.tokens[0].equal(task->Draw(4 + 1).tokens));
  // Three images: a lane of the shard has one, of place 2, the next both of place 3.
  const backend::BlockData images =
      batches.Get({.module = 0, .rank = base::Rank{3}, .step = 1, .microbatch = -1});
  EXPECT_TRUE(images.patches.to(at::kFloat)
                  .equal(task->Draw(4 + 1).patches[0].to(at::kBFloat16).to(at::kFloat)));
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
