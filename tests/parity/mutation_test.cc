#include <array>
#include <functional>
#include <memory>

#include "tests/parity/expect_parity.h"
#include "tests/support/torch/mutating_backend.h"

namespace isthmus::tests {
namespace {

using plan::Placement;

/// Whether an op moves a boundary tensor (or its gradient), or is of the given purpose otherwise.
bool Moves(const plan::Role& role, std::uint32_t index, plan::ValueKind kind) {
  if (index >= role.ops.size()) return false;
  const plan::Op& op = role.ops[index];
  if (op.purpose != plan::Purpose::kBoundary) return false;
  for (const plan::ValueId value : role.consumed_by(op)) {
    if (role.storages[role.values[value].storage].kind == kind) return true;
  }
  for (const plan::ValueId value : role.produced_by(op)) {
    if (role.storages[role.values[value].storage].kind == kind) return true;
  }
  return false;
}

/// Runs a job whose boundary ops for values of `kind` are mutated, and says how far it is off.
double DistanceWith(const plan::Job& job, plan::ValueKind kind,
                    const std::function<Mutation(base::Rank)>& mutation) {
  std::array<Mutation, 8> active;
  ParityRun run{.job = job, .training = ParityTraining(), .num_steps = 3};
  run.factory = [&](base::Rank rank) {
    return std::make_unique<MutatingFactory>(active[rank.index()]);
  };
  run.before_op = [&](const plan::Role& role, base::Rank rank, std::uint32_t op) {
    active[rank.index()] = Moves(role, op, kind) ? mutation(rank) : Mutation{};
  };
  const ParityOutcome outcome = RunParity(run, at::kDouble);
  PrintWorst(outcome);
  return outcome.worst().worst();
}

Mutation Nothing(base::Rank) { return {}; }

/// First and second half of what a rank gets from the others.
Mutation SwapReceived(base::Rank) {
  return {.sent = {}, .received = [](const at::Tensor& tensor) {
            const std::int64_t half = tensor.size(0) / 2;
            tensor.copy_(tensor.roll(half, 0));
          }};
}
Mutation SwapSent(base::Rank) {
  return {.sent = SwapReceived(base::Rank{0}).received, .received = {}};
}
/// Rank 0 sends zeros.
Mutation DropOfRankZero(base::Rank rank) {
  if (rank.value() != 0) return {};
  return {.sent = [](const at::Tensor& tensor) { tensor.zero_(); }, .received = {}};
}
Mutation DropAll(base::Rank) {
  return {.sent = [](const at::Tensor& tensor) { tensor.zero_(); }, .received = {}};
}
Mutation Scale(base::Rank) {
  return {.sent = [](const at::Tensor& tensor) { tensor.mul_(0.5); }, .received = {}};
}

/// Gathers lanes forward.
plan::Job FanIn() {
  return ParityJob(Placement::kColocated,
                   {TinyEncoder("vision", {.dp = 4}), TinyLlm({.tp = 2, .dp = 2})});
}
/// Gathers shards backward.
plan::Job FanOut() {
  return ParityJob(Placement::kColocated,
                   {TinyEncoder("vision", {.tp = 4}), TinyLlm({.tp = 2, .dp = 2})});
}
plan::Job Apart() {
  return ParityJob(Placement::kNonColocated,
                   {TinyEncoder("vision", {.dp = 2}), TinyLlm({.dp = 2})});
}

constexpr double kTolerance = 1e-9;

TEST(ParityCatches, NothingWhereNothingIsWrong) {
  EXPECT_LT(DistanceWith(FanIn(), plan::ValueKind::kActivation, Nothing), kTolerance);
  EXPECT_LT(DistanceWith(FanOut(), plan::ValueKind::kGradient, Nothing), kTolerance);
  EXPECT_LT(DistanceWith(Apart(), plan::ValueKind::kGradient, Nothing), kTolerance);
}

TEST(ParityCatches, SwappedShards) {
  EXPECT_GT(DistanceWith(FanIn(), plan::ValueKind::kActivation, SwapReceived), kTolerance);
  EXPECT_GT(DistanceWith(FanOut(), plan::ValueKind::kGradient, SwapReceived), kTolerance);
  EXPECT_GT(DistanceWith(Apart(), plan::ValueKind::kActivation, SwapSent), kTolerance);
}

TEST(ParityCatches, ADroppedGradient) {
  EXPECT_GT(DistanceWith(FanOut(), plan::ValueKind::kGradient, DropOfRankZero), kTolerance);
  EXPECT_GT(DistanceWith(Apart(), plan::ValueKind::kGradient, DropAll), kTolerance);
}

TEST(ParityCatches, AGradientScaledByTheRatioOfDataParallelCopies) {
  EXPECT_GT(DistanceWith(FanOut(), plan::ValueKind::kGradient, Scale), kTolerance);
  EXPECT_GT(DistanceWith(Apart(), plan::ValueKind::kGradient, Scale), kTolerance);
}

}  // namespace
}  // namespace isthmus::tests
