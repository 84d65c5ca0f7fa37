#include "studies/duty_relief.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "studies/predict.h"
#include "tests/support/small_decoder.h"

namespace isthmus::studies {
namespace {

// Four stages of 8 microbatches: bubbles and exposed communication leave the tensor cores idle.
const std::string kFourStages = tests::SmallDecoder("tp: 2, pp: 4, dp: 8");
constexpr const char* kSwitch = "parameters.clock.duty_relief.enabled=1";

double FullStep(const StepSimulation& simulation) {
  return simulation.StepTime(simulation.profile(), simulation.scenario().cluster);
}

TEST(StudiesDutyRelief, AStepWithoutIdleTimeHasLittle) {
  const auto scenario = scenarios::ParseScenario(kFourStages, "four.yaml");
  const StepSimulation simulation(scenario);
  const auto at = [&](double step_time_s) {
    return EstimateDutyRelief(simulation.program(), scenario.profile, scenario.profile,
                              step_time_s);
  };
  // The longer the step, the more of it the same kernels leave idle, up to the burst clock.
  const double step = FullStep(simulation);
  EXPECT_GT(at(step).clock_ratio, scenario.profile.Number("clock.bf16.ratio"));
  EXPECT_GT(at(1.2 * step).clock_ratio, at(step).clock_ratio);
  EXPECT_LT(at(step).step_time_s, step);
  EXPECT_DOUBLE_EQ(at(100 * step).clock_ratio, 1);
}

TEST(StudiesDutyRelief, TheEstimateForARelievedProfileIsWhatWasApplied) {
  const auto scenario = scenarios::ParseScenario(kFourStages, "four.yaml", {kSwitch});
  const StepSimulation simulation(scenario);
  const double applied = simulation.profile().Number("clock.bf16.ratio");
  EXPECT_GT(applied, scenario.profile.Number("clock.bf16.ratio"));
  const sim::DutyRelief relief = EstimateDutyRelief(simulation.program(), scenario.profile,
                                                    simulation.profile(), FullStep(simulation));
  EXPECT_NEAR(relief.clock_ratio, applied, 0.001);
  EXPECT_NEAR(relief.step_time_s / FullStep(simulation), 1, 0.002);
}

TEST(StudiesDutyRelief, TheSwitchReachesEveryPredictionWhateverItsMetric) {
  const auto plain = scenarios::ParseScenario(kFourStages, "four.yaml");
  const auto followed = scenarios::ParseScenario(kFourStages, "four.yaml", {kSwitch});
  const auto part =
      scenarios::ParseScenario(kFourStages, "four.yaml", {kSwitch, "step.metric=forward_backward"});
  const Prediction relieved = Predict(followed, "test");
  EXPECT_LT(relieved.step_time_s, Predict(plain, "test").step_time_s);
  EXPECT_EQ(relieved.figures.assumptions.back(), kClockIsRelieved);
  // The balance is that of the whole step; forward and backward alone would have less idle time.
  EXPECT_EQ(StepSimulation(part).profile().Number("clock.bf16.ratio"),
            StepSimulation(followed).profile().Number("clock.bf16.ratio"));
  EXPECT_EQ(Predict(part, "test").figures.step_time_s, relieved.figures.step_time_s);
}

TEST(StudiesDutyRelief, RoundsStopAtTheFixedPoint) {
  const auto scenario = scenarios::ParseScenario(kFourStages, "four.yaml");
  const StepSimulation simulation(scenario);
  int rounds = 0;
  const profiles::Profile relieved = RelievedProfile(
      simulation.program(), scenario.profile, [&](const profiles::Profile& profile) {
        ++rounds;
        return simulation.StepTime(profile, scenario.cluster);
      });
  EXPECT_GE(rounds, 2);
  EXPECT_LE(rounds, 8);
  EXPECT_EQ(relieved.name(), scenario.profile.name());
  const double factor =
      relieved.Number("clock.bf16.ratio") / scenario.profile.Number("clock.bf16.ratio");
  EXPECT_NEAR(relieved.Number("clock.fp8.ratio"),
              std::fmin(1.0, scenario.profile.Number("clock.fp8.ratio") * factor), 1e-12);
}

}  // namespace
}  // namespace isthmus::studies
