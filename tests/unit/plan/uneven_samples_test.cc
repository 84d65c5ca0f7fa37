// Samples with different numbers of images: what lanes, microbatches and messages hold then.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "plan/model/sample_spans.h"
#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using tests::BytesOf;
using tests::EncoderOf;
using tests::FindCollectives;
using tests::FindComputes;
using tests::JobOf;
using tests::LlmOf;
using tests::OpAt;
using tests::ProblemsOf;

/// Of an image at the LLM: 96 tokens of width 768 in 16 bit.
constexpr std::int64_t kImageBytes = std::int64_t{96} * 768 * 2;

/// A job whose encoder has so many images in each sample.
Job WithCounts(Job job, std::vector<std::int32_t> counts) {
  Module& encoder = job.modules.front();
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  encoder.tokens_per_sample = encoder.llm_tokens_per_sample = most * encoder.span_tokens;
  encoder.spans_of_sample = std::move(counts);
  return job;
}

/// Bytes of what a forward of the encoder hands on, by microbatch.
std::vector<std::int64_t> Outputs(const Program& program, int rank) {
  const Role& role = program.role(base::Rank{rank});
  std::vector<std::int64_t> bytes;
  for (const std::size_t index : FindComputes(program, rank, 0, Action::kForward)) {
    for (const ValueId value : role.produced_by(role.ops[index])) {
      const Storage& storage = role.storages[role.values[value].storage];
      if (storage.category != MemoryCategory::kBoundary) continue;
      bytes.push_back(program.Size(base::Rank{rank}, storage.size).value());
    }
  }
  return bytes;
}

/// Bytes of a rank's messages over boundaries, in host order.
std::vector<std::int64_t> Messages(const Program& program, int rank, bool sends) {
  const Role& role = program.role(base::Rank{rank});
  std::vector<std::int64_t> bytes;
  for (const Transfer& transfer : role.transfers) {
    if (transfer.sends != sends) continue;
    bytes.push_back(program.Size(base::Rank{rank}, transfer.size).value());
  }
  return bytes;
}

bool HasWork(const Program& program, int rank, std::size_t op) {
  return !program.WorkOf(base::Rank{rank}, OpAt(program, rank, op)).parts.empty();
}

double EncoderFlops(const Program& program) {
  double sum = 0;
  for (int rank = 0; rank < program.num_ranks; ++rank) {
    for (const Op& op : program.role(base::Rank{rank}).ops) {
      if (op.kind == OpKind::kCompute && op.module == 0)
        sum += program.WorkOf(base::Rank{rank}, op).model_flops.value();
    }
  }
  return sum;
}

TEST(SampleSpans, AreAlikeOrCounted) {
  const SampleSpans alike(5, 2, {});  // spans of 2, 2 and 1 tokens
  EXPECT_TRUE(alike.are_alike());
  EXPECT_EQ(alike.SpansBefore(2), 6);
  EXPECT_EQ(alike.TokensBefore(2), 10);
  EXPECT_EQ(alike.TokenAt(5), 9);
  const SampleSpans counted(6, 2, {3, 0, 1});
  EXPECT_FALSE(counted.are_alike());
  EXPECT_EQ(counted.SpansBefore(2), 3);
  EXPECT_EQ(counted.TokensBefore(3), 8);
}

// LLM TP2 DP2 on ranks {0, 1} and {2, 3}, a lane of the encoder on each. Shard 0 has three images
// in its first sample, of which its lanes get ⌊3/2⌋ = 1 and 2; shard 1 has none.
TEST(UnevenSamples, LanesCutTheSpansOfTheirShard) {
  const Program program = Build(WithCounts(
      JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 4}), LlmOf({.tp = 2, .dp = 2})}, 2),
      {3, 0, 0, 0}));
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_EQ(program.boundaries[0].boundary_case, BoundaryCase::kFanIn);
  EXPECT_EQ(program.boundaries[0].tokens_forward, 288);
  const std::vector<std::int64_t> lanes{96, 192, 0, 0};
  for (int rank = 0; rank < 4; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_EQ(program.boundaries[0].ranks[index].held_forward.size(), lanes[index]);
    const auto forward = FindComputes(program, rank, 0, Action::kForward);
    EXPECT_EQ(HasWork(program, rank, forward.front()), rank < 2);
    // The gather of a shard without images stays in the list, and is skipped.
    const auto gathers =
        FindCollectives(program, rank, CollectiveKind::kAllGather, Purpose::kBoundary);
    ASSERT_EQ(gathers.size(), 1U);
    EXPECT_EQ(BytesOf(program, rank, OpAt(program, rank, gathers.front())),
              rank < 2 ? 3 * kImageBytes : 0);
  }
  // Microbatch 0 of shard 0 has all of its rows.
  EXPECT_EQ(program.MicrobatchTokens(0, 0, 0), (Interval{0, 288}));
  EXPECT_EQ(program.MicrobatchTokens(0, 0, 1), (Interval{288, 288}));
  EXPECT_TRUE(program.MicrobatchTokens(0, 1, 0).empty());
}

// One lane for two shards: it has the images of both, three and four.
TEST(UnevenSamples, LanesOfSeveralShardsHaveThemWhole) {
  const Program program = Build(WithCounts(
      JobOf(Placement::kColocated, {EncoderOf("vision", {.tp = 2}), LlmOf({.dp = 2})}, 2),
      {1, 2, 0, 4}));
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_EQ(program.boundaries[0].boundary_case, BoundaryCase::kFanOut);
  EXPECT_EQ(program.boundaries[0].ranks[0].held_forward, (Interval{0, 672}));
  EXPECT_EQ(program.boundaries[0].ranks[1].needed_forward, (Interval{288, 672}));
}

// Encoder DP2 on ranks 0 and 1, LLM DP2 on 2 and 3, three microbatches of a sample each: the second
// has text alone, and the second lane never gets an image.
TEST(UnevenSamples, MicrobatchesApartHaveTheirOwnMessages) {
  const Program program = Build(WithCounts(
      JobOf(Placement::kNonColocated, {EncoderOf("vision", {.dp = 2}), LlmOf({.dp = 2})}, 3),
      {1, 0, 2, 0, 0, 0}));
  EXPECT_EQ(ProblemsOf(program), "");
  const Boundary& boundary = program.boundaries[0];
  EXPECT_EQ(boundary.table_of_microbatch, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(boundary.tokens_forward, 3 * 96);
  EXPECT_EQ(Outputs(program, 0), (std::vector<std::int64_t>{kImageBytes, 0, 2 * kImageBytes}));
  EXPECT_EQ(Messages(program, 0, true),
            (std::vector<std::int64_t>{kImageBytes, 0, 2 * kImageBytes}));
  EXPECT_EQ(Messages(program, 2, true),
            (std::vector<std::int64_t>{kImageBytes, 0, 2 * kImageBytes}));
  EXPECT_TRUE(Messages(program, 1, true).empty());
  EXPECT_TRUE(Messages(program, 3, false).empty());
  EXPECT_EQ(PayloadForward(boundary, 3, base::Bytes(2)).value(), 3 * kImageBytes);
  for (const std::size_t op : FindComputes(program, 0, 0, Action::kBackward)) {
    EXPECT_EQ(HasWork(program, 0, op), OpAt(program, 0, op).microbatch != 1);
  }
}

// The same microbatches in another order share tables: 2, 1, 2, 1 images.
TEST(UnevenSamples, MicrobatchesThatAreAlikeShareATable) {
  const Program program = Build(
      WithCounts(JobOf(Placement::kNonColocated, {EncoderOf("vision", {.tp = 2}), LlmOf({})}, 4),
                 {2, 1, 2, 1}));
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_EQ(program.boundaries[0].table_of_microbatch, (std::vector<std::uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(program.boundaries[0].other_ranks.size(), 1U);
}

TEST(UnevenSamples, HomogeneousEncodersRunOnTheImagesOfTheirMicrobatch) {
  const Program program = Build(WithCounts(
      JobOf(Placement::kHomogeneous, {EncoderOf("vision"), LlmOf({.pp = 2, .dp = 2})}, 2),
      {0, 2, 1, 0}));
  EXPECT_EQ(ProblemsOf(program), "");
  EXPECT_EQ(Outputs(program, 0), (std::vector<std::int64_t>{0, 2 * kImageBytes}));
  EXPECT_EQ(Outputs(program, 1), (std::vector<std::int64_t>{kImageBytes, 0}));
}

// An image costs the same wherever it is.
TEST(UnevenSamples, FlopsAreThoseOfAllImages) {
  for (const Placement placement : {Placement::kHomogeneous, Placement::kColocated}) {
    Module encoder = EncoderOf("vision");
    if (placement == Placement::kColocated) encoder.layout = Layout{.dp = 2};
    const Job job = JobOf(placement, {encoder, LlmOf({.dp = 2})}, 2);
    const double even = EncoderFlops(Build(WithCounts(job, {1, 1, 1, 1})));
    const double uneven = EncoderFlops(Build(WithCounts(job, {3, 0, 0, 1})));
    EXPECT_GT(even, 0);
    EXPECT_NEAR(uneven / even, 1.0, 1e-12);
  }
}

// A projector on the LLM's ranks maps what came with the microbatch.
TEST(UnevenSamples, ProjectorsWithTheLlmFollowTheirMicrobatch) {
  Job job = WithCounts(
      JobOf(Placement::kColocated, {EncoderOf("vision", {.dp = 2}), LlmOf({.dp = 2})}, 2),
      {2, 0, 1, 1});
  job.modules[0].projector->place = Projector::Place::kWithLlm;
  const Program program = Build(job);
  EXPECT_EQ(ProblemsOf(program), "");
  const auto flops = [&](int rank, int microbatch) {
    const auto ops = FindComputes(program, rank, 1, Action::kForward, microbatch);
    return program.WorkOf(base::Rank{rank}, OpAt(program, rank, ops.front())).model_flops.value();
  };
  // 2 · 96 · 384 · 768 for an image.
  constexpr double kProjection = 2.0 * 96 * 384 * 768;
  EXPECT_NEAR(flops(0, 0) - flops(0, 1), 2 * kProjection, 1.0);
  EXPECT_NEAR(flops(1, 0) - flops(0, 1), kProjection, 1.0);
}

}  // namespace
}  // namespace isthmus::plan
