// A small decoder trains on ranks that are threads, and in every layout alike.

#include "backend/torch/execute/executor.h"

#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/data/sample_batches.h"
#include "base/error.h"
#include "tests/support/program_jobs.h"
#include "tests/support/torch_ranks.h"

namespace isthmus::backend {
namespace {

/// Gives the data of the first step in every step, so that the loss falls fast.
class FirstStepAgain final : public BatchSource {
 public:
  explicit FirstStepAgain(const plan::Program& program)
      : batches_(program, MakeTask("random", ShapeOfSamples(program), {.seed = 3})) {}
  BlockData Get(const BatchRequest& request) override {
    BatchRequest first = request;
    first.step = 0;
    return batches_.Get(first);
  }

 private:
  SampleBatches batches_;
};

/// 4 layers of 32, 4 heads of 8, 64 words, 16 tokens a sample, 8 samples a step; fp64 throughout.
plan::Job TinyJob(const plan::Layout& layout) {
  plan::Module llm = tests::Gpt("llm", 4, 32, 4, 64);
  llm.transformer.ffn_hidden = 64;
  llm.transformer.max_positions = 16;
  llm.transformer.tied_embeddings = false;
  llm.settings.precision = plan::DType::kFp64;
  llm.settings.gradient_dtype = plan::DType::kFp64;
  llm.layout = layout;
  plan::Job job = tests::JobOf(plan::Placement::kHomogeneous, {llm}, 8 / layout.dp);
  job.workload.sequence_length = 16;
  job.optimizer.bucket_parameters = 20'000;
  return job;
}

TrainingOptions Training() {
  TrainingOptions options;
  options.learning_rate.peak = 0.01;
  options.epsilon = 1e-6;
  return options;
}

std::vector<StepResult> Train(const plan::Job& job, int num_steps,
                              const TrainingOptions& training = Training()) {
  const plan::Program program = plan::Build(job);
  std::vector<StepResult> steps;
  tests::RunOnRanks(program, [&](base::Rank rank, Communicators& communicators) {
    FirstStepAgain data(program);
    const std::unique_ptr<Device> device = MakeCpuDevice(std::chrono::seconds(60));
    Executor executor(program, rank, communicators, data, *device, {.training = training});
    for (int step = 0; step < num_steps; ++step) {
      const StepResult result = executor.RunStep(step);
      if (rank == base::Rank{0}) steps.push_back(result);
    }
  });
  return steps;
}

// A model of 64 words that knows nothing has a loss of ln 64; 20 steps on the same samples halve
// it.
TEST(ExecutorTest, LearnsWhatItSeesAgainAndAgain) {
  const std::vector<StepResult> steps = Train(TinyJob({}), 20);
  EXPECT_NEAR(steps.front().loss, std::log(64.0), 0.1);
  EXPECT_LT(steps.back().loss, 0.5 * steps.front().loss);
  EXPECT_EQ(steps.front().tokens, 8 * 16);
  EXPECT_GT(steps.front().gradient_norm, 0.0);
}

// The same model on the same data: losses and norms differ by rounding of sums only.
TEST(ExecutorTest, TrainsAlikeInEveryLayout) {
  constexpr int kSteps = 4;
  const std::vector<StepResult> alone = Train(TinyJob({}), kSteps);
  const std::vector<plan::Layout> layouts{{.dp = 2},           {.tp = 2},
                                          {.pp = 2},           {.pp = 2, .dp = 2},
                                          {.pp = 2, .vpp = 2}, {.tp = 2, .pp = 2, .dp = 2}};
  for (const plan::Layout& layout : layouts) {
    const std::vector<StepResult> steps = Train(TinyJob(layout), kSteps);
    for (std::size_t step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(steps[step].loss, alone[step].loss, 1e-11) << plan::ToText(layout) << step;
      EXPECT_NEAR(steps[step].gradient_norm, alone[step].gradient_norm, 1e-11)
          << plan::ToText(layout) << step;
    }
  }
}

// Stages of unlike size have unlike parts of their buckets, and one table of words.
TEST(ExecutorTest, TiedEmbeddingsTrainAlikeOnBothEnds) {
  plan::Job job = TinyJob({});
  job.modules[0].transformer.tied_embeddings = true;
  const std::vector<StepResult> alone = Train(job, 4);
  plan::Job apart = TinyJob({.pp = 2, .dp = 2});
  apart.modules[0].transformer.tied_embeddings = true;
  const std::vector<StepResult> steps = Train(apart, 4);
  EXPECT_NEAR(steps.back().loss, alone.back().loss, 1e-11);
  EXPECT_NEAR(steps.back().gradient_norm, alone.back().gradient_norm, 1e-11);
}

// Weight gradients of the head that wait for the cool-down are the same gradients.
TEST(ExecutorTest, DeferredHeadTrainsAlike) {
  plan::Job job = TinyJob({.pp = 2});
  const std::vector<StepResult> plain = Train(job, 3);
  job.schedule.defer_embedding_wgrad = 2;
  const std::vector<StepResult> deferred = Train(job, 3);
  EXPECT_NEAR(deferred.back().loss, plain.back().loss, 1e-12);
}

TEST(ExecutorTest, RecomputedLayersTrainAlike) {
  plan::Job job = TinyJob({});
  const std::vector<StepResult> plain = Train(job, 3);
  job.modules[0].settings.recompute = plan::Recompute::kFull;
  const std::vector<StepResult> recomputed = Train(job, 3);
  EXPECT_EQ(recomputed.back().loss, plain.back().loss);
}

// A partner that never comes: the error says in which op and on which communicator it was missed.
TEST(ExecutorTest, SaysInWhichOpAPartnerIsMissing) {
  const plan::Program program = plan::Build(TinyJob({.pp = 2}));
  std::string message;
  std::promise<void> is_over;
  const auto body = [&](base::Rank rank, Communicators& communicators) {
    // There, so that its connection stays open, but silent.
    if (rank == base::Rank{1}) {
      is_over.get_future().wait_for(std::chrono::seconds(10));
      return;
    }
    FirstStepAgain data(program);
    const std::unique_ptr<Device> device = MakeCpuDevice(std::chrono::seconds(60));
    Executor executor(program, rank, communicators, data, *device, {.training = Training()});
    try {
      executor.RunStep(0);
    } catch (const base::IoError& error) {
      message = error.what();
    }
    is_over.set_value();
  };
  tests::RunOnRanks(program, body, std::chrono::milliseconds(500));
  EXPECT_THAT(message, ::testing::HasSubstr("receive of 4096 bytes on world"));
  EXPECT_THAT(message, ::testing::HasSubstr("in op "));
  EXPECT_THAT(message, ::testing::HasSubstr("of rank 0 in step 1: "));
}

}  // namespace
}  // namespace isthmus::backend
