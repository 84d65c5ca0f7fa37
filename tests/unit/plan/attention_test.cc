#include <gtest/gtest.h>

#include "plan/model/layers.h"
#include "tests/support/model_catalogue.h"
#include "tests/support/work_sums.h"

namespace isthmus::plan {
namespace {

using tests::AttentionFlops;

BlockShape OneLayer(const Module& module, std::int64_t tokens, std::int64_t span, int tp, int cp) {
  BlockShape shape;
  shape.module = &module;
  shape.block.num_layers = 1;
  shape.tp = tp;
  shape.cp = cp;
  shape.tokens = tokens;
  shape.span = span;
  return shape;
}

std::vector<Segment> AttentionSegments(const Work& work) {
  std::vector<Segment> found;
  tests::ForEachSegment(work, [&](const Segment& segment, int) {
    if (std::string_view(segment.name).starts_with("attention")) found.push_back(segment);
  });
  return found;
}

TEST(AttentionTest, ImagesAttendWithinThemselves) {
  const Module vit = tests::Encoder("vit", 1, 1408, 16);
  const Work work = DescribeWork(OneLayer(vit, 2500, 1024, 1, 1), Action::kForward);
  const std::vector<Segment> segments = AttentionSegments(work);
  ASSERT_EQ(segments.size(), 1U);
  ASSERT_EQ(segments[0].kernels.size(), 2U);
  // 2500 = 2 · 1024 + 452; nothing is masked.
  const auto& whole = std::get<Attention>(segments[0].kernels[0]);
  EXPECT_EQ(whole.num_sequences, 2);
  EXPECT_EQ(whole.query_len, 1024);
  EXPECT_FALSE(whole.causal);
  EXPECT_EQ(std::get<Attention>(segments[0].kernels[1]).query_len, 452);
  EXPECT_DOUBLE_EQ(AttentionFlops(work), 4.0 * 1408 * (2.0 * 1024 * 1024 + 452.0 * 452));
  EXPECT_DOUBLE_EQ(work.model_flops.value(), work.hardware_flops.value());
}

// One sequence of 32,768 over cp 4: blocks of 8,192. Step 0 half of L² (causal), each later step
// L × L/2: together 4 · L²/2 = (s²/2)/4, a quarter of the sequence's work.
TEST(AttentionTest, RingStepsAddUpToTheRanksShareOfTheCausalWork) {
  const Module llm = tests::Llama("llm", 1, 4096, 14336, 32);
  const Work ring = DescribeWork(OneLayer(llm, 8192, 32768, 1, 4), Action::kForward);
  const Work whole = DescribeWork(OneLayer(llm, 32768, 32768, 1, 1), Action::kForward);
  EXPECT_DOUBLE_EQ(AttentionFlops(ring), AttentionFlops(whole) / 4);
  EXPECT_DOUBLE_EQ(ring.model_flops.value(), whole.model_flops.value() / 4);

  const std::vector<Segment> segments = AttentionSegments(ring);
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].overlap, Overlap::kRing);
  ASSERT_EQ(segments[0].kernels.size(), 4U);  // steps + 1
  const auto& first = std::get<Attention>(segments[0].kernels[0]);
  const auto& later = std::get<Attention>(segments[0].kernels[3]);
  EXPECT_TRUE(first.causal);
  EXPECT_FALSE(later.causal);
  EXPECT_EQ(later.query_len, 8192);
  EXPECT_EQ(later.kv_len, 4096);
  ASSERT_TRUE(segments[0].collective);
  EXPECT_EQ(segments[0].collective->steps, 3);
  EXPECT_EQ(segments[0].collective->axes, AxisSet(kCp));
  // K and V of 8,192 tokens, 1,024 wide, bf16.
  EXPECT_EQ(segments[0].collective->bytes.value(), 2 * 2 * 8192 * 1024);
  // Merge: 4·q·(cp + 1) a token.
  EXPECT_EQ(std::get<MemoryBound>(segments[1].kernels[0]).bytes.value(), 5 * 4 * 8192 * 4096);
}

TEST(AttentionTest, RingBackwardMovesGradientsAlongAndOnceHome) {
  const Module llm = tests::Llama("llm", 1, 4096, 14336, 32);
  const Work backward = DescribeWork(OneLayer(llm, 8192, 32768, 2, 4), Action::kBackward);
  const std::vector<Segment> segments = AttentionSegments(backward);
  ASSERT_EQ(segments.size(), 3U);
  // K, V and their gradients of 8,192 tokens, 512 wide at tp 2.
  EXPECT_EQ(segments[0].collective->bytes.value(), 4 * 2 * 8192 * 512);
  EXPECT_EQ(segments[1].collective->bytes.value(), 2 * 2 * 8192 * 512);
  EXPECT_EQ(segments[1].collective->steps, 1);
  // 6·cp·T·(q + 2k), 2,048 + 2 · 512.
  EXPECT_EQ(std::get<MemoryBound>(segments[2].kernels[0]).bytes.value(), 6 * 4 * 8192 * 3072);
}

// Gathered: 8,192 queries against 32,768 / 2 keys in the mean of the zigzag's two chunks, the same
// FLOP as the ring's; K and V of 32,768 tokens, 1,024 wide, and their copy in order at 4 B.
TEST(AttentionTest, GatheredKeysDoTheWorkOfTheRing) {
  Module llm = tests::Llama("llm", 1, 4096, 14336, 32);
  const BlockShape shape = OneLayer(llm, 8192, 32768, 1, 4);
  const Work ring = DescribeWork(shape, Action::kForward);
  const Work ring_backward = DescribeWork(shape, Action::kBackward);
  llm.settings.context_parallel = ContextParallel::kAllGather;
  const Work gathered = DescribeWork(shape, Action::kForward);
  EXPECT_DOUBLE_EQ(AttentionFlops(gathered), AttentionFlops(ring));
  const std::vector<Segment> segments = AttentionSegments(gathered);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[0].collective->kind, CollectiveKind::kAllGather);
  EXPECT_EQ(segments[0].collective->axes, AxisSet(kCp));
  EXPECT_EQ(segments[0].collective->bytes.value(), 2 * 2 * 32768 * 1024);
  EXPECT_EQ(std::get<MemoryBound>(segments[1].kernels[0]).bytes.value(), 4 * 2 * 32768 * 1024);
  const auto& core = std::get<Attention>(segments[2].kernels[0]);
  EXPECT_EQ(core.query_len, 8192);
  EXPECT_EQ(core.kv_len, 16384);
  EXPECT_FALSE(core.causal);

  const Work backward = DescribeWork(shape, Action::kBackward);
  EXPECT_DOUBLE_EQ(AttentionFlops(backward), AttentionFlops(ring_backward));
  const std::vector<Segment> back = AttentionSegments(backward);
  ASSERT_EQ(back.size(), 4U);
  EXPECT_EQ(back[3].collective->kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(back[3].collective->bytes.value(), 2 * 2 * 32768 * 1024);
}

TEST(AttentionTest, FewKeyValueHeadsAreReplicatedOverTp) {
  const Module llm = tests::Llama("llm", 1, 4096, 14336, 32, 2);
  const Work work = DescribeWork(OneLayer(llm, 4096, 4096, 8, 1), Action::kForward);
  const auto attention = std::get<Attention>(AttentionSegments(work)[0].kernels[0]);
  EXPECT_EQ(attention.heads, 4);
  EXPECT_EQ(attention.kv_heads, 1);
  // The model needs a quarter head, the rank computes one.
  EXPECT_GT(work.hardware_flops.value(), work.model_flops.value());
}

// 8,192 tokens a rank exchanged for a quarter of 32 heads (8 key-value heads): all 32,768 tokens of
// 8 (and 2) heads, the same work as a ring's share. What a rank holds goes out: q, k, v of 6,144
// columns, then the output's 4,096; the backward the other way round.
TEST(AttentionTest, ExchangeOfHeadsMovesTokensForHeads) {
  Module llm = tests::Llama("llm", 1, 4096, 14336, 32);
  const Work ring = DescribeWork(OneLayer(llm, 8192, 32768, 1, 4), Action::kForward);
  llm.settings.context_parallel = ContextParallel::kAllToAll;
  const Work work = DescribeWork(OneLayer(llm, 8192, 32768, 1, 4), Action::kForward);
  EXPECT_DOUBLE_EQ(AttentionFlops(work), AttentionFlops(ring));
  const std::vector<Segment> segments = AttentionSegments(work);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[0].collective->kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(segments[0].collective->bytes.value(), 2L * 8192 * 6144);
  const auto& core = std::get<Attention>(segments[1].kernels[0]);
  EXPECT_EQ(core.query_len, 32768);
  EXPECT_EQ(core.heads, 8);
  EXPECT_EQ(core.kv_heads, 2);
  EXPECT_EQ(segments[2].collective->bytes.value(), 2L * 8192 * 4096);
  const std::vector<Segment> backward =
      AttentionSegments(DescribeWork(OneLayer(llm, 8192, 32768, 1, 4), Action::kBackward));
  ASSERT_EQ(backward.size(), 3U);
  EXPECT_EQ(backward[0].collective->bytes.value(), 2L * 8192 * 4096);
  EXPECT_EQ(backward[2].collective->bytes.value(), 2L * 8192 * 6144);
}

}  // namespace
}  // namespace isthmus::plan
