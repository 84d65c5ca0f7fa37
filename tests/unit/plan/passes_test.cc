// Passes: bucketing with overlap, recompute, offload; and how chunks are cut into ops.

#include <algorithm>
#include <cstdint>
#include <string>
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
using tests::JobOf;
using tests::LlmOf;
using tests::OpAt;
using tests::ProblemsOf;

constexpr std::int64_t kHidden = 768;
constexpr std::int64_t kLayer = 4 * kHidden * kHidden + 2 * kHidden * 3072 + 2 * 2 * kHidden;
constexpr std::int64_t kTable = 32000 * kHidden;
constexpr std::int64_t kStem = kTable + 1536 * kHidden;  // words and learned positions
constexpr std::int64_t kHead = kTable + 2 * kHidden;     // with the final norm

/// Numbers of Compute ops of one action for microbatches 0 to 3.
std::vector<std::size_t> CountsByMicrobatch(const Program& program, Action action) {
  std::vector<std::size_t> counts;
  for (int microbatch = 0; microbatch < 4; ++microbatch) {
    counts.push_back(FindComputes(program, 0, 0, action, microbatch).size());
  }
  return counts;
}

/// LLM of 8 layers on two data-parallel ranks, buckets of 15 M parameters. From the back, a bucket
/// is full with the head (24.6 M), with three layers (21.2 M) twice, and the rest is one more: two
/// layers (14.2 M) and the stem. Four buckets.
Job BucketedJob(bool overlap_grad_reduce, bool overlap_param_gather) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.dp = 2})});
  job.optimizer = {.overlap_grad_reduce = overlap_grad_reduce,
                   .overlap_param_gather = overlap_param_gather,
                   .bucket_parameters = 15'000'000};
  return job;
}

using Counts = std::vector<std::size_t>;

TEST(Bucketing, SplitsOnlyTheFirstAndTheLastMicrobatch) {
  const Program both = Build(BucketedJob(true, true));
  EXPECT_EQ(CountsByMicrobatch(both, Action::kForward), (Counts{4, 1, 1, 4}));
  EXPECT_EQ(CountsByMicrobatch(both, Action::kBackward), (Counts{4, 1, 1, 4}));
  const Program reduces = Build(BucketedJob(true, false));
  EXPECT_EQ(CountsByMicrobatch(reduces, Action::kForward), (Counts{1, 1, 1, 4}));
  const Program gathers = Build(BucketedJob(false, true));
  EXPECT_EQ(CountsByMicrobatch(gathers, Action::kForward), (Counts{4, 1, 1, 1}));
  const Program neither = Build(BucketedJob(false, false));
  EXPECT_EQ(CountsByMicrobatch(neither, Action::kForward), (Counts{1, 1, 1, 1}));
  for (const Program* program : {&both, &reduces, &gathers, &neither}) {
    EXPECT_EQ(ProblemsOf(*program), "");
  }
}

TEST(Bucketing, ReducesEachBucketRightBehindTheBlockThatFinishesIt) {
  const Program program = Build(BucketedJob(true, true));
  const auto backwards = FindComputes(program, 0, 0, Action::kBackward, 3);
  const auto reduces =
      FindCollectives(program, 0, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
  ASSERT_EQ(reduces.size(), 4U);
  const std::vector<std::int64_t> parameters{kHead, 3 * kLayer, 3 * kLayer, 2 * kLayer + kStem};
  for (std::size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(reduces[index], backwards[index] + 1);
    // Main gradients are fp32.
    EXPECT_EQ(BytesOf(program, 0, OpAt(program, 0, reduces[index])), 4 * parameters[index]);
  }
  // Parameters are gathered in the order in which the forward reads them, in 16 bits.
  const auto gathers =
      FindCollectives(program, 0, CollectiveKind::kAllGather, Purpose::kParameterGather);
  ASSERT_EQ(gathers.size(), 4U);
  for (std::size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(BytesOf(program, 0, OpAt(program, 0, gathers[index])), 2 * parameters[3 - index]);
  }
}

/// Whether an op consumes anything that another one produces.
bool WaitsFor(const Program& program, std::size_t op, std::size_t producer) {
  const Role& role = program.role(base::Rank{0});
  const auto consumed = role.consumed_by(role.ops[op]);
  const auto produced = role.produced_by(role.ops[producer]);
  return std::any_of(consumed.begin(), consumed.end(), [&](ValueId value) {
    return std::find(produced.begin(), produced.end(), value) != produced.end();
  });
}

TEST(Bucketing, WithoutOverlapEverythingWaits) {
  const Program program = Build(BucketedJob(false, false));
  const auto backwards = FindComputes(program, 0, 0, Action::kBackward);
  const auto reduces =
      FindCollectives(program, 0, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
  ASSERT_EQ(reduces.size(), 1U);
  EXPECT_EQ(BytesOf(program, 0, OpAt(program, 0, reduces[0])), 4 * (kStem + 8 * kLayer + kHead));
  EXPECT_GT(reduces[0], backwards.back());
  // With the gathers overlapped the first block needs only its own bucket, else all of them.
  for (const bool overlapped : {true, false}) {
    const Program gathers = Build(BucketedJob(true, overlapped));
    const auto all =
        FindCollectives(gathers, 0, CollectiveKind::kAllGather, Purpose::kParameterGather);
    const std::size_t first = FindComputes(gathers, 0, 0, Action::kForward, 0).front();
    EXPECT_TRUE(WaitsFor(gathers, first, all.front()));
    EXPECT_EQ(WaitsFor(gathers, first, all.back()), !overlapped);
  }
}

TEST(Blocks, SpanTheLayersThatAreAskedFor) {
  // 8 layers: one chunk, eight ops, or four of three, three and two.
  for (const auto& [layers, ops] :
       std::vector<std::pair<int, std::size_t>>{{0, 1}, {1, 8}, {3, 3}}) {
    Job job = JobOf(Placement::kHomogeneous, {LlmOf({})});
    job.schedule.block_layers = layers;
    const Program program = Build(job);
    EXPECT_EQ(CountsByMicrobatch(program, Action::kForward), (Counts{ops, ops, ops, ops}));
    EXPECT_EQ(ProblemsOf(program), "");
  }
}

TEST(Blocks, UnevenStagesHaveTheirOwnLayers) {
  const std::vector<int> layers{1, 3, 3, 1};
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 4, .stage_layers = layers})});
  job.schedule.block_layers = 1;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_EQ(program.modules[0].first_layer, (std::vector<int>{0, 1, 4, 7, 8}));
  EXPECT_EQ(program.modules[0].rank_parameters,
            (std::vector<std::int64_t>{kStem + kLayer, 3 * kLayer, 3 * kLayer, kLayer + kHead}));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(FindComputes(program, rank, 0, Action::kForward, 2).size(),
              static_cast<std::size_t>(layers[static_cast<std::size_t>(rank)]));
  }
}

TEST(Recompute, RebuildsEachLayerRightBeforeItsBackward) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2})});
  job.modules[0].settings.recompute = Recompute::kFull;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  for (int rank = 0; rank < 2; ++rank) {
    const Role& role = program.role(base::Rank{rank});
    const auto recomputes = FindComputes(program, rank, 0, Action::kRecompute);
    EXPECT_EQ(recomputes.size(), 4U * 4U);  // layers of the stage × microbatches
    for (const std::size_t index : recomputes) {
      const Op& op = role.ops[index];
      const Op& next = role.ops[index + 1];
      ASSERT_EQ(next.kind, OpKind::kCompute);
      EXPECT_EQ(next.action(), Action::kBackward);
      EXPECT_EQ(next.microbatch, op.microbatch);
      // It makes a context of what the forward kept, and the backward uses it.
      const ValueId context = role.produced_by(op).front();
      EXPECT_EQ(role.storages[role.values[context].storage].kind, ValueKind::kContext);
      const auto used = role.consumed_by(next);
      EXPECT_NE(std::find(used.begin(), used.end(), context), used.end());
      const auto read = role.consumed_by(op);
      EXPECT_TRUE(std::any_of(read.begin(), read.end(), [&](ValueId value) {
        return role.storages[role.values[value].storage].kind == ValueKind::kCheckpoint;
      }));
    }
  }
}

TEST(Recompute, CanBeOfSomeLayersOfAStage) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2})});
  job.modules[0].settings.recompute = Recompute::kFull;
  job.modules[0].settings.recompute_layers = 1;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_EQ(FindComputes(program, 0, 0, Action::kRecompute).size(), 4U);  // one a microbatch
}

TEST(Recompute, SelectiveIsInsideTheBackward) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2})});
  job.modules[0].settings.recompute = Recompute::kSelective;
  EXPECT_TRUE(FindComputes(Build(job), 0, 0, Action::kRecompute).empty());
}

TEST(Offload, MovesParametersAwayDuringTheLlmsPhase) {
  Job job =
      JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 4}), LlmOf({.tp = 2, .pp = 2})});
  job.modules[0].settings.offload_parameters = true;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  for (int rank = 0; rank < 4; ++rank) {
    const Role& role = program.role(base::Rank{rank});
    const auto copies = Find(program, rank, [](const Op& op) { return op.kind == OpKind::kCopy; });
    ASSERT_EQ(copies.size(), 2U);
    EXPECT_EQ(role.ops[copies[0]].copy(), CopyDirection::kToHost);
    EXPECT_EQ(role.ops[copies[1]].copy(), CopyDirection::kToDevice);
    const std::int64_t parameters = program.modules[0].rank_parameters[0];
    for (const std::size_t copy : copies)
      EXPECT_EQ(BytesOf(program, rank, role.ops[copy]), 2 * parameters);
    // Away between the encoder's forward and the LLM's first; back when the cooldown begins.
    const auto llm_forward = FindComputes(program, rank, 1, Action::kForward);
    EXPECT_LT(FindComputes(program, rank, 0, Action::kForward).back(), copies[0]);
    EXPECT_LT(copies[0], llm_forward.front());
    EXPECT_EQ(copies[1], llm_forward.back() + 1);
    // The encoder's backward reads what came back.
    const auto back = role.produced_by(role.ops[copies[1]]);
    const auto read =
        role.consumed_by(role.ops[FindComputes(program, rank, 0, Action::kBackward).front()]);
    EXPECT_NE(std::find(read.begin(), read.end(), back.front()), read.end());
  }
}

TEST(Passes, AreNamed) {
  Job job = JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 2}), LlmOf({.dp = 2})});
  job.modules[0].settings.offload_parameters = true;
  job.modules[1].settings.recompute = Recompute::kFull;
  EXPECT_EQ(Build(job).passes,
            (std::vector<std::string>{"overlap_param_gather", "overlap_grad_reduce",
                                      "offload vision", "recompute llm"}));
}

}  // namespace
}  // namespace isthmus::plan
