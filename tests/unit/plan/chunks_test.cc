// Several chunks a rank: what each holds, who its neighbours are, what stays the rank's.

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using tests::EncoderOf;
using tests::FindCollectives;
using tests::FindComputes;
using tests::FindOptimizer;
using tests::JobOf;
using tests::LlmOf;
using tests::OpAt;
using tests::ProblemsOf;

constexpr std::int64_t kHidden = 768;
constexpr std::int64_t kLayer = 4 * kHidden * kHidden + 2 * kHidden * 3072 + 2 * 2 * kHidden;
constexpr std::int64_t kTable = 32000 * kHidden;
constexpr std::int64_t kStem = kTable + 1536 * kHidden;  // words and learned positions
constexpr std::int64_t kHead = kTable + 2 * kHidden;     // with the final norm

/// 8 layers on 2 stages of 2 chunks: layers 0-1 and 4-5 on stage 0, 2-3 and 6-7 on stage 1.
Job TwoByTwo(int dp = 1) {
  return JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2, .vpp = 2, .dp = dp})});
}

TEST(Chunks, ARankHoldsEveryPpthVirtualStage) {
  const Program program = Build(TwoByTwo());
  EXPECT_EQ(ProblemsOf(program), "");
  const PlacedModule& llm = program.modules[0];
  EXPECT_EQ(llm.num_chunks(), 2);
  EXPECT_EQ(llm.first_layer, (std::vector<int>{0, 2, 4, 6, 8}));
  EXPECT_EQ(llm.rank_parameters,
            (std::vector<std::int64_t>{kStem + 4 * kLayer, 4 * kLayer + kHead}));
  for (int rank = 0; rank < 2; ++rank) {
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      const auto forwards = FindComputes(program, rank, 0, Action::kForward, microbatch);
      ASSERT_EQ(forwards.size(), 2U);
      EXPECT_EQ(OpAt(program, rank, forwards[0]).chunk, 0);
      EXPECT_EQ(OpAt(program, rank, forwards[1]).chunk, 1);
      const auto backwards = FindComputes(program, rank, 0, Action::kBackward, microbatch);
      ASSERT_EQ(backwards.size(), 2U);
      EXPECT_EQ(OpAt(program, rank, backwards[0]).chunk, 1);
    }
  }
}

/// FLOP of one forward or backward of a chunk.
double Flops(const Program& program, int rank, Action action, int chunk) {
  for (const std::size_t index : FindComputes(program, rank, 0, action, 1)) {
    const Op& op = OpAt(program, rank, index);
    if (op.chunk == chunk) return program.WorkOf(base::Rank{rank}, op).hardware_flops.value();
  }
  return 0;
}

// The head has 2·1536·32000·768 FLOP forward; the chunks have two layers each.
TEST(Chunks, OnlyTheLastVirtualStageHasTheHead) {
  const Program program = Build(TwoByTwo());
  const double layers = Flops(program, 0, Action::kForward, 0);
  EXPECT_DOUBLE_EQ(Flops(program, 0, Action::kForward, 1), layers);
  EXPECT_DOUBLE_EQ(Flops(program, 1, Action::kForward, 0), layers);
  EXPECT_DOUBLE_EQ(Flops(program, 1, Action::kForward, 1) - layers, 2.0 * 1536 * 32000 * 768);
}

// What leaves the last stage goes round to the next chunk of the first: a step of 4 microbatches
// moves 3 activations of each forward and 3 gradients backward, between the same two ranks.
TEST(Chunks, MessagesGoRoundTheRanks) {
  const Program program = Build(TwoByTwo());
  for (int rank = 0; rank < 2; ++rank) {
    const Role& role = program.role(base::Rank{rank});
    int sends = 0;
    for (const Transfer& transfer : role.transfers) sends += transfer.sends ? 1 : 0;
    // Stage 0 sends two activations and one gradient a microbatch, stage 1 the other way round.
    EXPECT_EQ(sends, 4 * 3);
    EXPECT_EQ(role.transfers.size(), 2U * 4 * 3);
  }
}

// Every chunk has buckets of its own, those behind the first one each; one step updates them all.
TEST(Chunks, BucketsAreTheChunksAndTheOptimizerIsTheRanks) {
  Job job = TwoByTwo(2);
  job.optimizer.bucket_parameters = 10'000'000;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  const auto reduces =
      FindCollectives(program, 0, CollectiveKind::kReduceScatter, Purpose::kGradientSync);
  // Chunk 0 of stage 0 fills a bucket with two layers (14.2 M) and has another with the stem.
  EXPECT_EQ(reduces.size(), 3U);
  // The last chunk's gradients are reduced first, in the middle of the other chunk's backwards.
  const auto backwards = FindComputes(program, 0, 0, Action::kBackward);
  EXPECT_LT(reduces.front(), backwards.back());
  EXPECT_EQ(OpAt(program, 0, reduces.front()).block, 2);
  EXPECT_EQ(FindOptimizer(program, 0, OptimizerAction::kStep).size(), 1U);
  EXPECT_EQ(FindOptimizer(program, 0, OptimizerAction::kNorm).size(), 1U);
}

// 30 layers on 4 stages of 8 chunks (Llama 405B cut to 30 layers, T1215): 32 virtual stages, of
// which the first has the embedding alone and the last the head alone.
TEST(Chunks, TheEndsMayHaveNoLayer) {
  const Program program =
      Build(JobOf(Placement::kHomogeneous, {LlmOf({.pp = 4, .vpp = 8}, 30)}, 8));
  EXPECT_EQ(ProblemsOf(program), "");
  const std::vector<int>& first = program.modules[0].first_layer;
  ASSERT_EQ(first.size(), 33U);
  EXPECT_EQ(first[1], 0);
  EXPECT_EQ(first[2], 1);
  EXPECT_EQ(first[31], 30);
  EXPECT_EQ(
      program.modules[0].rank_parameters,
      (std::vector<std::int64_t>{kStem + 7 * kLayer, 8 * kLayer, 8 * kLayer, 7 * kLayer + kHead}));
}

// 126 = 8·16 - 2 (Llama 3.1 405B on 8 stages of 2 chunks).
TEST(Chunks, TheEndsHaveALayerLessWhereTwoMoreWouldDivide) {
  const Program program =
      Build(JobOf(Placement::kHomogeneous, {LlmOf({.pp = 8, .vpp = 2}, 126)}, 8));
  const std::vector<int>& first = program.modules[0].first_layer;
  EXPECT_EQ(first[1], 7);
  EXPECT_EQ(first[2], 15);
  EXPECT_EQ(first[15], 119);
}

TEST(Chunks, EncodersJoinTheFirstVirtualStageOnly) {
  const Program inside =
      Build(JobOf(Placement::kHomogeneous, {EncoderOf("vision"), LlmOf({.pp = 2, .vpp = 2})}));
  EXPECT_EQ(ProblemsOf(inside), "");
  EXPECT_EQ(FindComputes(inside, 0, 0, Action::kForward).size(), 4U);
  const Program beside = Build(JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 4}),
                                                             LlmOf({.pp = 2, .vpp = 2, .dp = 2})}));
  EXPECT_EQ(ProblemsOf(beside), "");
  EXPECT_EQ(FindComputes(beside, 0, 0, Action::kForward).size(), 1U);
}

TEST(Chunks, MakeAnotherProgram) {
  std::set<std::uint64_t> hashes;
  for (const int vpp : {1, 2, 4}) {
    hashes.insert(Hash(Build(JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2, .vpp = vpp})}))));
  }
  EXPECT_EQ(hashes.size(), 3U);
}

// The schedule allows stage 0 of 2 x 2 chunks 2(p-1) + (v-1)p + 1 = 5 in flight; the whole of the
// forwards first would be 8.
TEST(Chunks, MoreInFlightThanTheScheduleAllowsIsFound) {
  Program program = Build(TwoByTwo());
  Role& role = program.roles[program.role_of_rank[0]];
  std::stable_sort(role.ops.begin(), role.ops.end(), [](const Op& a, const Op& b) {
    const auto is_late = [](const Op& op) {
      return op.kind != OpKind::kCompute || op.action() != Action::kForward;
    };
    return !is_late(a) && is_late(b);
  });
  EXPECT_NE(ProblemsOf(program).find("8 microbatches of llm in flight, the schedule allows 5"),
            std::string::npos)
      << ProblemsOf(program);
}

}  // namespace
}  // namespace isthmus::plan
