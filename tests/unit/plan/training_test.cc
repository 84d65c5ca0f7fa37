// What is trained, and what that costs: frozen modules, gradient sums, norms, the optimizer.

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using tests::BytesOf;
using tests::EncoderOf;
using tests::Find;
using tests::FindCollectives;
using tests::FindComputes;
using tests::FindOptimizer;
using tests::JobOf;
using tests::LlmOf;
using tests::MembersOf;
using tests::OpAt;
using tests::ProblemsOf;

constexpr std::int64_t kTable = std::int64_t{32000} * 768;
constexpr std::int64_t kMatrices = 7'077'888;  // of a layer: 4·768² + 2·768·3072

/// FLOP of a module's backward of one microbatch on a rank.
double BackwardFlops(const Program& program, int rank, int module, int microbatch) {
  double flops = 0;
  for (const std::size_t index :
       FindComputes(program, rank, module, Action::kBackward, microbatch)) {
    flops += program.WorkOf(base::Rank{rank}, OpAt(program, rank, index)).hardware_flops.value();
  }
  return flops;
}

/// Ops of a module that write or read main gradients.
std::size_t GradientOps(const Program& program, int rank, int module) {
  const Role& role = program.role(base::Rank{rank});
  return Find(program, rank,
              [&](const Op& op) {
                const auto consumed = role.consumed_by(op);
                return op.module == module &&
                       std::any_of(consumed.begin(), consumed.end(), [&](ValueId value) {
                         return role.storages[role.values[value].storage].kind ==
                                ValueKind::kGradientBucket;
                       });
              })
      .size();
}

// Encoder and LLM frozen, the projector between them trained: gradients have to reach it through
// the whole LLM, whose weights need none. What is saved is 2·parameters·tokens of weight gradients:
// 8 layers of 7,077,888 and the head of 32,000·768, times 1,536 tokens.
TEST(Frozen, LlmBehindATrainedProjectorStillRunsItsBackward) {
  Job job = JobOf(Placement::kNonColocated, {EncoderOf("vision", {}), LlmOf({})});
  const Program trained = Build(job);
  job.modules[0].settings.frozen = true;
  job.modules[1].settings.frozen = true;
  const Program frozen = Build(job);
  EXPECT_EQ(ProblemsOf(frozen), "");
  const double saved = BackwardFlops(trained, 1, 1, 2) - BackwardFlops(frozen, 1, 1, 2);
  EXPECT_DOUBLE_EQ(saved, 2.0 * 1536 * static_cast<double>(8 * kMatrices + kTable));
  EXPECT_EQ(GradientOps(frozen, 1, 1), 0U);
  EXPECT_TRUE(FindOptimizer(frozen, 1, OptimizerAction::kStep).empty());
  EXPECT_EQ(FindOptimizer(frozen, 0, OptimizerAction::kStep).size(), 1U);
}

// Only the projector has a backward: its weight gradient, 2·tokens·in·out, and no input gradient.
TEST(Frozen, EncoderWithATrainedProjectorRunsTheProjectorsBackwardOnly) {
  Job job = JobOf(Placement::kNonColocated, {EncoderOf("vision", {}), LlmOf({})});
  job.modules[0].settings.frozen = true;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_EQ(FindComputes(program, 0, 0, Action::kForward, 1).size(), 2U);  // encoder, projector
  ASSERT_EQ(FindComputes(program, 0, 0, Action::kBackward, 1).size(), 1U);
  EXPECT_DOUBLE_EQ(BackwardFlops(program, 0, 0, 1), 2.0 * 768 * 384 * 768);
}

TEST(Frozen, NoGradientCrossesToAnEncoderThatTrainsNothing) {
  Job job = JobOf(Placement::kNonColocated, {EncoderOf("vision", {}), LlmOf({})});
  job.modules[0].settings.frozen = true;
  job.modules[0].projector->frozen = true;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_TRUE(FindComputes(program, 0, 0, Action::kBackward).empty());
  for (int rank = 0; rank < 2; ++rank) {
    const Role& role = program.role(base::Rank{rank});
    for (const Transfer& transfer : role.transfers) {
      EXPECT_EQ(transfer.sends, rank == 0);  // activations only: 0 sends, 1 receives
    }
  }
}

// Stage 0 of the encoder trains nothing, stage 1 the projector. Its ranks are in the module's norm.
TEST(Frozen, AStageThatTrainsNothingTakesPartInTheNormOfItsModule) {
  Job job = JobOf(Placement::kNonColocated, {EncoderOf("vision", {.pp = 2}), LlmOf({})});
  job.modules[0].settings.frozen = true;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  for (int rank = 0; rank < 2; ++rank) {
    std::set<std::vector<int>> groups;
    for (const std::size_t index :
         FindCollectives(program, rank, CollectiveKind::kAllReduce, Purpose::kScalars)) {
      groups.insert(MembersOf(program, rank, OpAt(program, rank, index)));
    }
    EXPECT_EQ(groups, (std::set<std::vector<int>>{{0, 1}, {0, 1, 2}}));
    EXPECT_EQ(FindOptimizer(program, rank, OptimizerAction::kStep).size(), rank == 0 ? 0U : 1U);
  }
}

// A frozen LLM has no embedding gradients to add up, even if a projector on its first stage trains.
TEST(Frozen, TiedEmbeddingsOfAFrozenLlmAreNotSummed) {
  Job job = JobOf(Placement::kNonColocated, {EncoderOf("vision", {}), LlmOf({.pp = 2})});
  job.modules[0].projector->place = Projector::Place::kWithLlm;
  job.modules[1].settings.frozen = true;
  job.modules[1].transformer.tied_embeddings = true;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_TRUE(
      FindCollectives(program, 1, CollectiveKind::kAllReduce, Purpose::kGradientSync).empty());
}

// 32,000 words of 768 in fp32, between the first and the last stage of each copy; stages are
// {0,1}, {2,3}, {4,5} and copies are apart by one rank.
TEST(GradientSync, TiedEmbeddingsAreSummedOverTheEndsOfThePipeline) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 3, .dp = 2})});
  EXPECT_TRUE(
      FindCollectives(Build(job), 0, CollectiveKind::kAllReduce, Purpose::kGradientSync).empty());
  job.modules[0].transformer.tied_embeddings = true;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  for (int rank = 0; rank < 6; ++rank) {
    const auto sums =
        FindCollectives(program, rank, CollectiveKind::kAllReduce, Purpose::kGradientSync);
    ASSERT_EQ(sums.size(), rank == 2 || rank == 3 ? 0U : 1U);
    if (sums.empty()) continue;
    const Op& op = OpAt(program, rank, sums.front());
    EXPECT_EQ(MembersOf(program, rank, op), (std::vector<int>{rank % 2, rank % 2 + 4}));
    EXPECT_EQ(BytesOf(program, rank, op), 4 * kTable);
  }
}

// The first and the last stage's buckets differ, so after a reduction over the copies a rank would
// own another part of the table on the one than on the other: the sum comes first, whether the
// reductions overlap the backward or not.
TEST(GradientSync, TiedEmbeddingsAreSummedBeforeTheirBucketIsReduced) {
  for (const bool overlaps : {false, true}) {
    Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2, .dp = 2})});
    job.modules[0].transformer.tied_embeddings = true;
    job.optimizer.overlap_grad_reduce = overlaps;
    job.optimizer.bucket_parameters = 15'000'000;
    const Program program = Build(job);
    EXPECT_EQ(ProblemsOf(program), "");
    for (int rank = 0; rank < 4; ++rank) {
      const Role& role = program.role(base::Rank{rank});
      const auto sums =
          FindCollectives(program, rank, CollectiveKind::kAllReduce, Purpose::kGradientSync);
      ASSERT_EQ(sums.size(), 1U);
      const ValueId sum = role.produced_by(role.ops[sums[0]]).front();
      const auto reductions =
          FindCollectives(program, rank, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
      const auto reads_sum = [&](std::size_t op) {
        return role.consumed_by(role.ops[op]).front() == sum;
      };
      EXPECT_EQ(std::count_if(reductions.begin(), reductions.end(), reads_sum), 1) << rank;
    }
  }
}

// Norms see a part of the tokens on each tp rank: 8 layers of 2·(2·768) and the final one, fp32.
TEST(GradientSync, SequenceParallelNormsAreSummedOverTp) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.tp = 2})});
  const Program program = Build(job);
  const auto sums = FindCollectives(program, 1, CollectiveKind::kAllReduce, Purpose::kGradientSync);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(BytesOf(program, 1, OpAt(program, 1, sums[0])), 4 * (8 * 2 * 1536 + 1536));
  EXPECT_EQ(MembersOf(program, 1, OpAt(program, 1, sums[0])), (std::vector<int>{0, 1}));
  job.modules[0].settings.sequence_parallel = false;
  EXPECT_TRUE(
      FindCollectives(Build(job), 1, CollectiveKind::kAllReduce, Purpose::kGradientSync).empty());
}

// dp 4 as 2 copies of 2 shards: each bucket is reduce-scattered over the shards, then the half that
// a rank owns is summed over the copies. Parameters are gathered over the shards.
TEST(GradientSync, OptimizerInstancesSumOverTheirCopies) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.dp = 4})});
  job.modules[0].settings.optimizer_instances = 2;
  job.optimizer.bucket_parameters = 15'000'000;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  const auto scatters =
      FindCollectives(program, 1, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
  const auto sums = FindCollectives(program, 1, CollectiveKind::kAllReduce, Purpose::kGradientSync);
  ASSERT_EQ(scatters.size(), 4U);
  ASSERT_EQ(sums.size(), 4U);
  for (std::size_t bucket = 0; bucket < 4; ++bucket) {
    const Op& scatter = OpAt(program, 1, scatters[bucket]);
    const Op& sum = OpAt(program, 1, sums[bucket]);
    EXPECT_EQ(sums[bucket], scatters[bucket] + 1);
    EXPECT_EQ(MembersOf(program, 1, scatter), (std::vector<int>{0, 1}));
    EXPECT_EQ(MembersOf(program, 1, sum), (std::vector<int>{1, 3}));
    EXPECT_EQ(2 * BytesOf(program, 1, sum), BytesOf(program, 1, scatter));
  }
  const auto gathers =
      FindCollectives(program, 1, CollectiveKind::kAllGather, Purpose::kParameterGather);
  EXPECT_EQ(MembersOf(program, 1, OpAt(program, 1, gathers.front())), (std::vector<int>{0, 1}));
}

TEST(Optimizer, Fp16ChecksForOverflowBeforeAnybodySteps) {
  Job job = JobOf(Placement::kNonColocated, {EncoderOf("vision", {}), LlmOf({.pp = 2})});
  EXPECT_TRUE(FindOptimizer(Build(job), 1, OptimizerAction::kCheck).empty());
  job.modules[1].settings.precision = DType::kFp16;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  // The bf16 encoder checks nothing, but learns of the LLM's overflow.
  EXPECT_TRUE(FindOptimizer(program, 0, OptimizerAction::kCheck).empty());
  for (int rank = 0; rank < 3; ++rank) {
    const Role& role = program.role(base::Rank{rank});
    const auto steps = FindOptimizer(program, rank, OptimizerAction::kStep);
    ASSERT_EQ(steps.size(), 1U);
    const auto reductions =
        FindCollectives(program, rank, CollectiveKind::kAllReduce, Purpose::kScalars);
    std::size_t over_world = 0;
    for (const std::size_t index : reductions) {
      const Op& op = OpAt(program, rank, index);
      if (MembersOf(program, rank, op).size() != 3) continue;
      ++over_world;
      EXPECT_LT(index, steps[0]);
      const auto waits = role.consumed_by(role.ops[steps[0]]);
      EXPECT_NE(std::find(waits.begin(), waits.end(), role.produced_by(op).front()), waits.end());
    }
    EXPECT_EQ(over_world, 3U);  // token count, overflow, norm
    const auto checks = FindOptimizer(program, rank, OptimizerAction::kCheck);
    if (rank > 0) {
      ASSERT_EQ(checks.size(), 1U);
      EXPECT_LT(checks[0], steps[0]);
    }
  }
}

TEST(Optimizer, RunsZeroNormClipStepInThisOrder) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.dp = 2})});
  job.num_steps = 2;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  const auto zero = FindOptimizer(program, 0, OptimizerAction::kZero);
  const auto norm = FindOptimizer(program, 0, OptimizerAction::kNorm);
  const auto clip = FindOptimizer(program, 0, OptimizerAction::kClip);
  const auto step = FindOptimizer(program, 0, OptimizerAction::kStep);
  ASSERT_EQ(step.size(), 2U);
  for (std::size_t at = 0; at < 2; ++at) {
    EXPECT_LT(zero[at], norm[at]);
    EXPECT_LT(norm[at], clip[at]);
    EXPECT_LT(clip[at], step[at]);
    EXPECT_NE(OpAt(program, 0, step[at]).flags & kEndsStep, 0);
  }
  EXPECT_LT(step[0], zero[1]);
  job.optimizer.clip_gradients = false;
  EXPECT_TRUE(FindOptimizer(Build(job), 0, OptimizerAction::kNorm).empty());
}

}  // namespace
}  // namespace isthmus::plan
