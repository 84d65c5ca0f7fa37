#include <gtest/gtest.h>

#include "plan/model/framework.h"
#include "plan/model/layers.h"

namespace isthmus::plan {
namespace {

MemoryBound TrafficOf(const ModuleSettings& settings, OptimizerAction action) {
  const Work work = DescribeOptimizerWork(settings, 1000, 250, action);
  EXPECT_EQ(work.model_flops.value(), 0.0);
  return std::get<MemoryBound>(work.parts.at(0).segments.at(0).kernels.at(0));
}

// modelling_runs §5: 34 B per owned parameter, 3·g per held one for zero and scale.
TEST(OptimizerWorkTest, StepReadsWhatIsOwnedZeroAndScaleWhatIsHeld) {
  ModuleSettings settings;
  const MemoryBound step = TrafficOf(settings, OptimizerAction::kStep);
  EXPECT_EQ(step.memory_class, MemoryClass::kOptimizer);
  EXPECT_EQ(step.bytes.value(), 34 * 250);
  EXPECT_EQ((TrafficOf(settings, OptimizerAction::kZero).bytes +
             TrafficOf(settings, OptimizerAction::kClip).bytes)
                .value(),
            3 * 4 * 1000);
  EXPECT_EQ(TrafficOf(settings, OptimizerAction::kNorm).bytes.value(), 4 * 250);
  settings.gradient_dtype = DType::kBf16;
  EXPECT_EQ(TrafficOf(settings, OptimizerAction::kZero).bytes.value(), 2 * 1000);
}

TEST(OptimizerWorkTest, TheOwnBackendScalesWhatIsOwned) {
  ModuleSettings settings;
  settings.framework = FindRelease("isthmus");
  EXPECT_EQ(TrafficOf(settings, OptimizerAction::kClip).bytes.value(), 2 * 4 * 250);
}

TEST(OptimizerWorkTest, OnlyFp16LooksForOverflows) {
  ModuleSettings settings;
  EXPECT_EQ(TrafficOf(settings, OptimizerAction::kCheck).bytes.value(), 0);
  settings.precision = DType::kFp16;
  EXPECT_EQ(TrafficOf(settings, OptimizerAction::kCheck).bytes.value(), 4 * 250);
}

TEST(OptimizerWorkTest, ARankWithoutParametersHasNoWork) {
  EXPECT_TRUE(DescribeOptimizerWork({}, 0, 0, OptimizerAction::kStep).parts.empty());
}

}  // namespace
}  // namespace isthmus::plan
