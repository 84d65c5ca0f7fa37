// The LM head's weight gradients put off to the end of the backwards.

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using tests::EncoderOf;
using tests::FindCollectives;
using tests::FindComputes;
using tests::JobOf;
using tests::LlmOf;
using tests::OpAt;
using tests::ProblemsOf;

/// Two stages, four microbatches, `deferred` of whose head weight gradients wait.
Job Deferring(int deferred, int vpp = 1) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2, .vpp = vpp, .dp = 2})});
  job.schedule.defer_embedding_wgrad = deferred;
  return job;
}

constexpr int kLastStage = 2;  // its first rank

double Flops(const Program& program, Action action) {
  double flops = 0;
  for (const std::size_t index : FindComputes(program, kLastStage, 0, action)) {
    flops += program.WorkOf(base::Rank{kLastStage}, OpAt(program, kLastStage, index))
                 .hardware_flops.value();
  }
  return flops;
}

TEST(DeferredHead, TheFirstMicrobatchesGradientsComeAfterTheLastBackward) {
  for (const int vpp : {1, 2}) {
    const Program program = Build(Deferring(3, vpp));
    EXPECT_EQ(ProblemsOf(program), "");
    const auto inputs = FindComputes(program, kLastStage, 0, Action::kBackwardInput);
    const auto weights = FindComputes(program, kLastStage, 0, Action::kBackwardWeight);
    ASSERT_EQ(inputs.size(), 3U);
    ASSERT_EQ(weights.size(), 3U);
    const std::size_t last = FindComputes(program, kLastStage, 0, Action::kBackward).back();
    for (int index = 0; index < 3; ++index) {
      const Op& op = OpAt(program, kLastStage, weights[static_cast<std::size_t>(index)]);
      EXPECT_EQ(op.microbatch, index);
      EXPECT_EQ(op.chunk, vpp - 1);
      EXPECT_GT(weights[static_cast<std::size_t>(index)], last);
    }
    EXPECT_TRUE(FindComputes(program, 0, 0, Action::kBackwardInput).empty());
  }
}

// 2 · 1,536 tokens · 32,000 · 768 FLOP a microbatch move, none are lost.
TEST(DeferredHead, MovesTheFlopOfOneProduct) {
  const Program now = Build(Deferring(0));
  const Program later = Build(Deferring(4));
  const double product = 4 * 2.0 * 1536 * 32000 * 768;
  EXPECT_DOUBLE_EQ(Flops(later, Action::kBackwardWeight), product);
  EXPECT_DOUBLE_EQ(Flops(later, Action::kBackwardInput), product);
  EXPECT_DOUBLE_EQ(Flops(later, Action::kBackward), Flops(now, Action::kBackward) - 2 * product);
}

TEST(DeferredHead, ItsBucketIsReducedBehindIt) {
  Job job = Deferring(2);
  job.optimizer.bucket_parameters = 10'000'000;  // the head fills one, two layers fill another
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  const auto weights = FindComputes(program, kLastStage, 0, Action::kBackwardWeight);
  const auto reduces =
      FindCollectives(program, kLastStage, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
  ASSERT_EQ(reduces.size(), 3U);
  EXPECT_LT(reduces[1], weights.front());
  EXPECT_GT(reduces[2], weights.back());
  EXPECT_EQ(OpAt(program, kLastStage, reduces[2]).block, 2);
}

// What a deferred gradient needs stays: the head's context and the 16-bit gradient of the logits.
TEST(DeferredHead, KeepsTheGradientOfTheLogits) {
  const Program program = Build(Deferring(2));
  const Role& role = program.role(base::Rank{kLastStage});
  const auto weights = FindComputes(program, kLastStage, 0, Action::kBackwardWeight);
  std::int64_t logits = 0;
  for (const ValueId value : role.consumed_by(role.ops[weights.back()])) {
    const Storage& storage = role.storages[role.values[value].storage];
    if (storage.category != MemoryCategory::kLogits) continue;
    logits += program.Size(base::Rank{kLastStage}, storage.size).value();
  }
  EXPECT_EQ(logits, 2L * 1536 * 32000);
}

// Megatron's fused loss holds 6 B a logit, the later gradient among them: the head's backward holds
// no more logits than it would with its weight gradient.
TEST(DeferredHead, TheGradientIsAPartOfTheLogits) {
  for (const auto& [loss, bytes] :
       {std::pair{LossKernel::kFused, 6L}, {LossKernel::kInPlace, 2L}}) {
    Job job = Deferring(2);
    job.modules.front().settings.loss = loss;
    const Program program = Build(job);
    const Role& role = program.role(base::Rank{kLastStage});
    const auto inputs = FindComputes(program, kLastStage, 0, Action::kBackwardInput);
    const Op& op = role.ops[inputs.front()];
    std::set<StorageId> held;
    for (const ValueId value : role.consumed_by(op)) held.insert(role.values[value].storage);
    for (const ValueId value : role.produced_by(op)) held.insert(role.values[value].storage);
    std::int64_t logits = 0;
    for (const StorageId storage : held) {
      const Storage& what = role.storages[storage];
      if (what.category != MemoryCategory::kLogits) continue;
      logits += program.Size(base::Rank{kLastStage}, what.size).value();
    }
    EXPECT_EQ(logits, bytes * 1536 * 32000);
  }
}

TEST(DeferredHead, AMissingWeightGradientIsFound) {
  Program program = Build(Deferring(1));
  Role& role = program.roles[program.role_of_rank[kLastStage]];
  const std::size_t weight = FindComputes(program, kLastStage, 0, Action::kBackwardWeight).front();
  role.ops[weight].detail = static_cast<std::uint8_t>(Action::kRecompute);
  EXPECT_NE(ProblemsOf(program).find("has no weight gradient"), std::string::npos);
}

TEST(DeferredHead, IsNothingForAFrozenHead) {
  Job job = JobOf(Placement::kHomogeneous, {EncoderOf("vision"), LlmOf({.pp = 2})});
  job.modules[1].settings.frozen = true;
  job.schedule.defer_embedding_wgrad = 4;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_TRUE(FindComputes(program, 1, 1, Action::kBackwardWeight).empty());
}

}  // namespace
}  // namespace isthmus::plan
