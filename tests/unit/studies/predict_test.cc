#include "studies/predict.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "studies/kernel_times.h"
#include "tests/support/small_decoder.h"

namespace isthmus::studies {
namespace {

// A decoder over four stages with nothing to hide: 64 GPUs, 16 layers, 8 microbatches.
const std::string kFourStages = tests::SmallDecoder("tp: 2, pp: 4, dp: 8");

TEST(PredictTest, StragglersOfStagesDontAddUpAlongThePipeline) {
  const auto scenario = scenarios::ParseScenario(kFourStages, "four.yaml");
  const Prediction prediction = Predict(scenario, "test");
  // 0.0056 · log2(64 / 8) = 1.7 % of a rank's busy time (here 58 to 68 % of the step), once a step:
  // all stages wait side by side. One after the other they would be four times as much.
  const double bound = 0.0056 * std::log2(64.0 / 8.0);
  const double share =
      prediction.figures.shares[static_cast<std::size_t>(reports::TimeUse::kStraggler)];
  EXPECT_GT(share, 0.5 * bound);
  EXPECT_LT(share, 0.8 * bound);
  double on_path = 0;
  for (const reports::PathShare& part : prediction.figures.critical_path) {
    if (part.category == "straggler") on_path += part.share;
  }
  EXPECT_GT(on_path, 0);
  EXPECT_LT(on_path, bound);
}

TEST(PredictTest, ForwardBackwardIsAPartOfTheStepAndCountsWhenAskedFor) {
  const auto whole = Predict(scenarios::ParseScenario(kFourStages, "four.yaml"), "test");
  EXPECT_EQ(whole.step_time_s, whole.figures.step_time_s);
  EXPECT_LT(whole.forward_backward_time_s, whole.step_time_s);
  EXPECT_GT(whole.forward_backward_time_s, 0.8 * whole.step_time_s);
  const auto part = Predict(
      scenarios::ParseScenario(kFourStages, "four.yaml", {"step.metric=forward_backward"}), "test");
  EXPECT_EQ(part.step_time_s, whole.forward_backward_time_s);
}

TEST(PredictTest, AttentionOfPackedDocumentsStaysWithinThem) {
  const auto whole = scenarios::ParseScenario(kFourStages, "four.yaml");
  const auto packed =
      scenarios::ParseScenario(kFourStages, "four.yaml", {"workload.document_tokens=256"});
  const auto attention_of = [](const scenarios::Scenario& scenario) {
    for (const KernelTime& time :
         KernelTimes(StepSimulation(scenario).program(), scenario.profile)) {
      if (time.segment == "attention") return time.shape;
    }
    return std::string();
  };
  EXPECT_EQ(attention_of(whole), "cudnn 1 x 16 heads, 4096 x 4096 causal");
  EXPECT_EQ(attention_of(packed), "cudnn 16 x 16 heads, 256 x 256 causal");
  EXPECT_LT(Predict(packed, "test").step_time_s, Predict(whole, "test").step_time_s);
  EXPECT_THROW(
      scenarios::ParseScenario(kFourStages, "four.yaml", {"workload.document_tokens=8192"}),
      base::ScenarioError);
}

}  // namespace
}  // namespace isthmus::studies
