#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGpt = "scenarios/examples/gpt-8gpu.yaml";

TEST(TrainingTest, AFileSaysHowARealRunTrains) {
  const Training training =
      LoadScenario(kGpt, {"training.learning_rate=3e-4", "training.schedule=cosine",
                          "training.warmup_steps=10", "training.betas=[0.8, 0.95]",
                          "training.loss_scale.initial=1024", "training.data.task=shapes"})
          .training;
  EXPECT_EQ(training.learning_rate, 3e-4);
  EXPECT_EQ(training.schedule, LearningRateSchedule::kCosine);
  EXPECT_EQ(training.warmup_steps, 10);
  EXPECT_THAT(training.betas, ElementsAre(0.8, 0.95));
  EXPECT_EQ(training.loss_scale.initial, 1024.0);
  EXPECT_EQ(training.task, TrainingTask::kShapes);
  EXPECT_EQ(training.clip_norm, 1.0);
}

// Predictions of a scenario are the same however it trains; two real runs are not.
TEST(TrainingTest, ItEntersOnlyTheFingerprintOfRealRuns) {
  const Scenario scenario = LoadScenario(kGpt);
  const Scenario other = LoadScenario(kGpt, {"training.learning_rate=3e-4"});
  EXPECT_EQ(other.hash, scenario.hash);
  EXPECT_NE(other.run_hash, scenario.run_hash);
  EXPECT_NE(LoadScenario(kGpt, {"seed=2"}).run_hash, scenario.run_hash);
  // The machine's parameters decide predictions only.
  const Scenario slower = LoadScenario(kGpt, {"parameters.clock.bf16.ratio=0.5"});
  EXPECT_NE(slower.hash, scenario.hash);
}

TEST(TrainingTest, TheBoundOfTheNormFollowsThePlannedClip) {
  EXPECT_EQ(LoadScenario(kGpt, {"optimizer.clip_gradients=false"}).training.clip_norm, 0.0);
  EXPECT_EQ(LoadScenario(kGpt, {"training.clip_norm=0.5"}).training.clip_norm, 0.5);
}

TEST(TrainingTest, ItIsShownAndWritten) {
  const Scenario scenario = LoadScenario(kGpt, {"training.learning_rate=3e-4"});
  EXPECT_THAT(ShowScenario(scenario), HasSubstr("learning_rate: 0.0003 "));
  EXPECT_EQ(ParseScenario(ShowScenario(scenario), "shown.yaml").run_hash, scenario.run_hash);
}

}  // namespace
}  // namespace isthmus::scenarios
