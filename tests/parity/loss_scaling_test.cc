#include <array>
#include <cmath>

#include "backend/torch/checkpoint/training_parts.h"
#include "tests/parity/expect_parity.h"

namespace isthmus::tests {
namespace {

using backend::Executor;
using plan::Placement;

plan::Job InFp16() {
  return ParityJob(Placement::kColocated,
                   {TinyEncoder("vision", {.dp = 4}), TinyLlm({.tp = 2, .dp = 2})},
                   plan::DType::kFp16);
}

/// All that a rank owns, one after the other.
std::vector<at::Tensor> Owned(Executor& executor) {
  std::vector<at::Tensor> values;
  for (const std::uint16_t module : executor.modules()) {
    for (const auto& part : backend::OwnedParts(executor.ParametersOf(module))) {
      for (const auto& state : part.states) values.push_back(state.values.clone());
    }
  }
  return values;
}

bool Equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b,
                            [](const at::Tensor& x, const at::Tensor& y) { return x.equal(y); });
}

/// Frozen on ranks 0 and 1, in front of an LLM on ranks 2 and 3: rank 0 trains nothing.
plan::Job BehindAFrozenEncoder() {
  plan::Job job =
      ParityJob(Placement::kNonColocated, {TinyEncoder("vision", {.dp = 2}), TinyLlm({.tp = 2})},
                plan::DType::kFp16);
  job.modules[0].settings.frozen = true;
  job.modules[0].projector->frozen = true;
  return job;
}

/// One element of rank 2's reduced gradient overflows in step 1 of 5, just before the check.
void ExpectOverflowSkipsTheStepOnAll(const plan::Job& job) {
  std::array<Executor*, 4> executors{};
  int step_of_rank_2 = 0;
  ParityRun run{.job = job, .training = ParityTraining()};
  run.training.loss_scaling = {.initial_scale = 1024.0, .growth_interval = 2};
  run.before_op = [&](const plan::Role& role, base::Rank rank, std::uint32_t index) {
    if (rank.value() != 2 || step_of_rank_2 != 1 || index >= role.ops.size()) return;
    const plan::Op& op = role.ops[index];
    const bool checks =
        op.kind == plan::OpKind::kOptimizer && op.optimizer() == plan::OptimizerAction::kCheck;
    if (!checks) return;
    executors[2]->ParametersOf(op.module).buckets().front().owned_gradients()[0] = INFINITY;
  };
  RunExecutors(
      run, [&](const plan::Program&, base::Rank rank, Executor& executor, backend::Communicators&) {
        executors[rank.index()] = &executor;
        EXPECT_FALSE(executor.RunStep(0).skipped);
        const std::vector<at::Tensor> before = Owned(executor);
        if (rank.value() == 2) step_of_rank_2 = 1;
        const backend::StepResult skipped = executor.RunStep(1);
        if (rank.value() == 2) step_of_rank_2 = 2;
        EXPECT_TRUE(skipped.skipped);
        EXPECT_EQ(skipped.loss_scale, 1024.0);
        EXPECT_TRUE(Equal(Owned(executor), before));
        EXPECT_EQ(executor.num_updates(), 1);
        const backend::StepResult next = executor.RunStep(2);
        EXPECT_FALSE(next.skipped);
        EXPECT_EQ(next.loss_scale, 512.0);
        // Whoever has nothing to train has nothing that changes.
        EXPECT_EQ(Equal(Owned(executor), before), before.empty());
        // Two good steps in a row, 2 and 3, grow it again.
        EXPECT_FALSE(executor.RunStep(3).skipped);
        EXPECT_EQ(executor.RunStep(4).loss_scale, 1024.0);
        EXPECT_EQ(executor.num_updates(), 4);
      });
}

TEST(LossScaling, AnOverflowOnOneRankSkipsTheStepOnAllAndHalvesTheScale) {
  ExpectOverflowSkipsTheStepOnAll(InFp16());
}
TEST(LossScaling, AnOverflowIsToldToRanksThatTrainNothing) {
  ExpectOverflowSkipsTheStepOnAll(BehindAFrozenEncoder());
}

/// The clipped norm is that of the world on every rank, and the same as on the ranks that took it.
TEST(LossScaling, TheNormIsToldToRanksThatTrainNothing) {
  std::array<double, 4> norms{};
  RunExecutors(
      {.job = BehindAFrozenEncoder(), .training = ParityTraining()},
      [&](const plan::Program&, base::Rank rank, Executor& executor, backend::Communicators&) {
        executor.loss_scaler().Restore(1024.0, 0);
        norms[rank.index()] = executor.RunStep(0).gradient_norm;
      });
  EXPECT_GT(norms[2], 0.0);
  EXPECT_THAT(norms, testing::Each(norms[2]));
}

/// A scale at which every gradient overflows comes down by itself until training goes on.
TEST(LossScaling, AScaleThatIsTooLargeComesDown) {
  ParityRun run{.job = InFp16(), .training = ParityTraining()};
  run.training.loss_scaling.initial_scale = 0x1p24;
  RunExecutors(run,
               [&](const plan::Program&, base::Rank, Executor& executor, backend::Communicators&) {
                 EXPECT_TRUE(executor.RunStep(0).skipped);
                 int step = 1;
                 while (step < 24 && executor.RunStep(step).skipped) ++step;
                 EXPECT_LT(step, 24);
                 EXPECT_EQ(executor.loss_scaler().scale(), std::ldexp(1.0, 24 - step));
                 EXPECT_EQ(executor.num_updates(), 1);
               });
}

}  // namespace
}  // namespace isthmus::tests
