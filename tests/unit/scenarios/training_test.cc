#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGpt = "scenarios/examples/gpt-8gpu.yaml";

TEST(TrainingTest, AFileSaysHowARealRunTrains) {
  const Training training =
      LoadScenario(kGpt, {"training.learning_rate=3e-4", "training.schedule=cosine",
                          "training.warmup_steps=10", "training.decay_steps=100",
                          "training.betas=[0.8, 0.95]", "training.loss_scale.initial=1024",
                          "training.data.task=random"})
          .training;
  EXPECT_EQ(training.learning_rate, 3e-4);
  EXPECT_EQ(training.schedule, LearningRateSchedule::kCosine);
  EXPECT_EQ(training.warmup_steps, 10);
  EXPECT_EQ(training.decay_steps, 100);
  EXPECT_THAT(training.betas, ElementsAre(0.8, 0.95));
  EXPECT_EQ(training.loss_scale.initial, 1024.0);
  EXPECT_EQ(training.task, TrainingTask::kRandom);
  EXPECT_EQ(training.clip_norm, 1.0);
}

// A scenario's predictions are the same however it trains.
TEST(TrainingTest, TheFingerprintLeavesItOut) {
  EXPECT_EQ(LoadScenario(kGpt, {"training.learning_rate=3e-4"}).hash, LoadScenario(kGpt).hash);
}

// Real ranks compute in fp64 what no GPU's profile knows kernels for.
TEST(TrainingTest, WhatIsOnlyExecutedNeedsNoKernelsOfTheProfile) {
  const std::vector<std::string> fp64 = {"modules.llm.precision=fp64"};
  EXPECT_THROW(LoadScenario(kGpt, fp64), base::ScenarioError);
  const Scenario scenario = LoadScenario(kGpt, fp64, DefaultSearchPaths(), Purpose::kExecute);
  EXPECT_EQ(scenario.job.modules.front().settings.precision, plan::DType::kFp64);
}

TEST(TrainingTest, TheBoundOfTheNormFollowsThePlannedClip) {
  EXPECT_EQ(LoadScenario(kGpt, {"optimizer.clip_gradients=false"}).training.clip_norm, 0.0);
  EXPECT_EQ(LoadScenario(kGpt, {"training.clip_norm=0.5"}).training.clip_norm, 0.5);
}

TEST(TrainingTest, ItIsShownAndWritten) {
  const Scenario scenario = LoadScenario(kGpt, {"training.learning_rate=3e-4"});
  EXPECT_THAT(ShowScenario(scenario), HasSubstr("learning_rate: 0.0003 "));
  EXPECT_EQ(ParseScenario(ShowScenario(scenario), "shown.yaml").training.learning_rate, 3e-4);
}

}  // namespace
}  // namespace isthmus::scenarios
