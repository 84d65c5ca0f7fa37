#include "plan/model/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/model_catalogue.h"
#include "tests/support/work_sums.h"

namespace isthmus::plan {
namespace {

using testing::ElementsAre;
using tests::AttentionFlops;
using tests::GemmFlops;
using tests::MovedBytes;
using tests::NumCollectives;
using tests::SegmentNames;

constexpr std::int64_t kTokens = 8192;

Module Llama8b(TpOverlap overlap = TpOverlap::kNone, bool sequence_parallel = true) {
  Module module = tests::Llama("llm", 32, 4096, 14336, 32);
  module.settings.tp_overlap = overlap;
  module.settings.sequence_parallel = sequence_parallel;
  return module;
}

BlockShape Layers(const Module& module, int num_layers, int tp = 1, int cp = 1) {
  BlockShape shape;
  shape.module = &module;
  shape.block.num_layers = num_layers;
  shape.tp = tp;
  shape.cp = cp;
  shape.tokens = kTokens / cp;
  shape.span = kTokens;
  return shape;
}

const Segment& Named(const Work& work, std::string_view name) {
  for (const RepeatedSegments& part : work.parts) {
    for (const Segment& segment : part.segments) {
      if (segment.name == name) return segment;
    }
  }
  ADD_FAILURE() << "no segment " << name;
  static const Segment kNone;
  return kNone;
}

// Per layer 2·T·(h·(q + 2k) + q·h + 3·h·f) and, causal, 2·T·s·q.
TEST(LayersTest, ForwardFlopsAreTheClosedForm) {
  const Module module = Llama8b();
  const Work work = DescribeWork(Layers(module, 3), Action::kForward);
  const double matrices = 4096.0 * 6144 + 4096.0 * 4096 + 3.0 * 4096 * 14336;
  EXPECT_DOUBLE_EQ(GemmFlops(work), 3 * 2.0 * kTokens * matrices);
  EXPECT_DOUBLE_EQ(AttentionFlops(work), 3 * 2.0 * kTokens * kTokens * 4096);
  EXPECT_DOUBLE_EQ(work.model_flops.value(), work.hardware_flops.value());
  EXPECT_EQ(work.name, "llm forward 3 layers tokens 8192");
}

// Twice the GEMMs; attention 2 in the model, 2.5 on the hardware.
TEST(LayersTest, BackwardIsTwiceTheForwardAndAttentionTwoAndAHalfTimes) {
  const Module module = Llama8b();
  const Work forward = DescribeWork(Layers(module, 1), Action::kForward);
  const Work backward = DescribeWork(Layers(module, 1), Action::kBackward);
  EXPECT_DOUBLE_EQ(GemmFlops(backward), 2 * GemmFlops(forward));
  EXPECT_DOUBLE_EQ(AttentionFlops(backward), 2.5 * AttentionFlops(forward));
  EXPECT_DOUBLE_EQ(backward.model_flops.value(), 2 * forward.model_flops.value());
}

TEST(LayersTest, SegmentsComeInTheOrderTheyRun) {
  const Module module = Llama8b();
  EXPECT_THAT(SegmentNames(DescribeWork(Layers(module, 1, 2), Action::kForward)),
              ElementsAre("norm 1", "qkv gather", "qkv", "rotary", "attention", "proj",
                          "proj scatter", "residual 1", "norm 2", "fc1 gather", "fc1", "activation",
                          "fc2", "fc2 scatter", "residual 2"));
  EXPECT_THAT(SegmentNames(DescribeWork(Layers(module, 1), Action::kBackward)),
              ElementsAre("residual 2 backward", "fc2 dgrad", "fc2 wgrad", "activation backward",
                          "fc1 dgrad", "fc1 wgrad", "norm 2 backward", "residual 1 backward",
                          "proj dgrad", "proj wgrad", "attention backward", "rotary backward",
                          "qkv dgrad", "qkv wgrad", "norm 1 backward"));
}

// modelling_runs §4, bytes: norms 2·4·h, residuals 2·6·h a token, rotary 4(q + k), copy 4·q, gated
// activation 6·f; backward 2·6·h, 2·6·h, 4(q + k), 4(q + 2k), 10·f. h = q = 4096, k = 1024.
TEST(LayersTest, MemoryBoundBytesAreTheTables) {
  const Module module = Llama8b();
  const Work forward = DescribeWork(Layers(module, 1), Action::kForward);
  EXPECT_EQ(MovedBytes(forward, MemoryClass::kNorm), kTokens * 8 * 4096);
  EXPECT_EQ(MovedBytes(forward, MemoryClass::kElementwise),
            kTokens * (12 * 4096 + 4 * 5120 + 4 * 4096 + 6 * 14336));
  const Work backward = DescribeWork(Layers(module, 1), Action::kBackward);
  EXPECT_EQ(MovedBytes(backward, MemoryClass::kNormBackward), kTokens * 12 * 4096);
  EXPECT_EQ(MovedBytes(backward, MemoryClass::kElementwise),
            kTokens * (12 * 4096 + 4 * 5120 + 4 * 6144 + 10 * 14336));
}

// Layers multiply in fp8, the backward with promoted accumulation; head and attention in 16 bit at
// the run's clock.
TEST(LayersTest, Fp8IsForTheProductsOfLayers) {
  Module module = Llama8b();
  module.settings.precision = DType::kFp8;
  const BlockShape shape = Layers(module, 1);
  const Work forward = DescribeWork(shape, Action::kForward);
  const Work backward = DescribeWork(shape, Action::kBackward);
  const Gemm& fc1 = std::get<Gemm>(Named(forward, "fc1").kernels.front());
  EXPECT_EQ(fc1.dtype, DType::kFp8);
  EXPECT_FALSE(fc1.promoted_accumulation);
  EXPECT_EQ(fc1.output_bytes.value(), 2 * kTokens * 2 * 14336);
  for (const char* name : {"fc1 dgrad", "fc1 wgrad"}) {
    const Gemm& gemm = std::get<Gemm>(Named(backward, name).kernels.front());
    EXPECT_EQ(gemm.dtype, DType::kFp8) << name;
    EXPECT_TRUE(gemm.promoted_accumulation) << name;
  }
  EXPECT_TRUE(std::get<Attention>(Named(forward, "attention").kernels.front()).in_fp8_run);
  BlockShape head = Layers(module, 0);
  head.block.head = true;
  const Work loss = DescribeWork(head, Action::kForward);
  const Gemm& logits = std::get<Gemm>(Named(loss, "head").kernels.front());
  EXPECT_EQ(logits.dtype, DType::kBf16);
  EXPECT_TRUE(logits.in_fp8_run);
}

TEST(LayersTest, BlockScalingIsForTheProductsInFp8) {
  Module module = Llama8b();
  module.settings.precision = DType::kFp8;
  module.settings.fp8_scaling = Fp8Scaling::kBlock;
  BlockShape shape = Layers(module, 1);
  shape.block.head = true;
  const Work work = DescribeWork(shape, Action::kForward);
  EXPECT_TRUE(std::get<Gemm>(Named(work, "fc1").kernels.front()).block_scaled);
  EXPECT_FALSE(std::get<Gemm>(Named(work, "head").kernels.front()).block_scaled);
}

// What feeds an fp8 product through user buffers travels as T·h bytes, everything else as 2·T·h;
// model FLOP don't know the precision.
TEST(LayersTest, Fp8UserBuffersGatherBytes) {
  Module module = Llama8b(TpOverlap::kUserBuffers);
  const base::Flops flops = DescribeWork(Layers(module, 1, 4), Action::kForward).model_flops;
  module.settings.precision = DType::kFp8;
  const Work work = DescribeWork(Layers(module, 1, 4), Action::kForward);
  EXPECT_EQ(Named(work, "qkv").collective->bytes.value(), kTokens * 4096);
  EXPECT_EQ(Named(work, "fc2").collective->bytes.value(), 2 * kTokens * 4096);
  EXPECT_EQ(work.model_flops, flops);
  module.settings.tp_overlap = TpOverlap::kBulk;
  const Work plain = DescribeWork(Layers(module, 1, 4), Action::kForward);
  EXPECT_EQ(Named(plain, "qkv gather").collective->bytes.value(), 2 * kTokens * 4096);
}

// fp8 casts at 4 B an element: forward 2·h + q + f, backward (q + 2k) + 2·f + 2·h a token.
TEST(LayersTest, Fp8CastsInputsAndGradients) {
  Module module = Llama8b();
  module.settings.precision = DType::kFp8;
  const Work forward = DescribeWork(Layers(module, 1), Action::kForward);
  EXPECT_EQ(MovedBytes(forward, MemoryClass::kCast), kTokens * 4 * (2 * 4096 + 4096 + 14336));
  const Work backward = DescribeWork(Layers(module, 1), Action::kBackward);
  EXPECT_EQ(MovedBytes(backward, MemoryClass::kCast), kTokens * 4 * (6144 + 2 * 14336 + 2 * 4096));
  EXPECT_FALSE(std::get<Gemm>(Named(forward, "qkv").kernels[0]).promoted_accumulation);
  EXPECT_TRUE(std::get<Gemm>(Named(backward, "qkv wgrad").kernels[0]).promoted_accumulation);
}

// Kernels between the products: forward 2 norms, rotary of q and k, copy of q, 2 residuals,
// activation; backward twice 2 for the norms, rotary of q and k, copy of q, k, v, 2 residuals,
// activation. With 4 + 8 products and the attention's one: 13 and 19 launches.
TEST(LayersTest, LaunchesAreThoseOfTheFusedCode) {
  const Module module = Llama8b();
  EXPECT_EQ(tests::NumKernels(DescribeWork(Layers(module, 1), Action::kForward)), 13);
  EXPECT_EQ(tests::NumKernels(DescribeWork(Layers(module, 1), Action::kBackward)), 19);
}

// QK-norm reads and writes q and k, its backward reads two of that width and writes one.
TEST(LayersTest, QkNormMovesTheHeads) {
  Module module = Llama8b();
  module.transformer.qk_norm = true;
  const BlockShape shape = Layers(module, 1, 2);
  EXPECT_EQ(MovedBytes(DescribeWork(shape, Action::kForward), MemoryClass::kHeadNorm),
            kTokens * 4 * (2048 + 512));
  EXPECT_EQ(MovedBytes(DescribeWork(shape, Action::kBackward), MemoryClass::kHeadNormBackward),
            kTokens * 6 * (2048 + 512));
}

// nanotron: SiLU 4 B and gate 6 B an element, rotary in fp32 18 B, norms fused.
TEST(LayersTest, EagerCodeMovesWhatFusedCodeKeepsInRegisters) {
  Module module = Llama8b();
  module.settings.framework = FindRelease("nanotron");
  const Work forward = DescribeWork(Layers(module, 1), Action::kForward);
  EXPECT_EQ(MovedBytes(forward, MemoryClass::kNorm), kTokens * 8 * 4096);
  EXPECT_EQ(MovedBytes(forward, MemoryClass::kElementwise),
            kTokens * (12 * 4096 + 18 * 5120 + 4 * 4096 + 10 * 14336));
  module.settings.framework = FindRelease("llama-eager");
  const Work op_by_op = DescribeWork(Layers(module, 1), Action::kForward);
  EXPECT_EQ(MovedBytes(op_by_op, MemoryClass::kNorm), 0);
  EXPECT_EQ(MovedBytes(op_by_op, MemoryClass::kElementwise) -
                MovedBytes(forward, MemoryClass::kElementwise),
            kTokens * 2 * 32 * 4096);
}

// Without fusion the product writes 16 bit, and a kernel reads that, reads and writes fp32: 10 B.
TEST(LayersTest, EagerCodeAddsUpGradientsInAKernelOfItsOwn) {
  Module module = Llama8b();
  module.settings.framework = FindRelease("nanotron");
  const Segment wgrad = Named(DescribeWork(Layers(module, 1), Action::kBackward), "fc2 wgrad");
  ASSERT_EQ(wgrad.kernels.size(), 2U);
  EXPECT_EQ(std::get<Gemm>(wgrad.kernels[0]).output_bytes.value(), 2 * 4096 * 14336);
  EXPECT_EQ(std::get<MemoryBound>(wgrad.kernels[1]).bytes.value(), 10 * 4096 * 14336);
}

TEST(LayersTest, DropoutMasksAreAByteAnElement) {
  Module module = Llama8b();
  const Work without = DescribeWork(Layers(module, 1), Action::kForward);
  module.transformer.hidden_dropout = 0.1;
  const Work with = DescribeWork(Layers(module, 1), Action::kForward);
  EXPECT_EQ(
      MovedBytes(with, MemoryClass::kElementwise) - MovedBytes(without, MemoryClass::kElementwise),
      2 * kTokens * 4096);
}

// Two residuals of 10 B an element for 6 forward (no dropout), 8 for 6 backward, the gated MLP 4
// and 6 B more; a weight gradient is written in 2 B and added with 2 + 2·4.
TEST(LayersTest, WithoutFusionsKernelsMoveMore) {
  Module module = Llama8b();
  const Work fused = DescribeWork(Layers(module, 1), Action::kForward);
  const Work fused_backward = DescribeWork(Layers(module, 1), Action::kBackward);
  module.settings.framework = FindRelease("megatron-core-library");
  const Work forward = DescribeWork(Layers(module, 1), Action::kForward);
  const Work backward = DescribeWork(Layers(module, 1), Action::kBackward);
  const auto moved = [](const Work& work) { return MovedBytes(work, MemoryClass::kElementwise); };
  EXPECT_EQ(moved(forward) - moved(fused), kTokens * (2 * 4 * 4096 + 4 * 14336));
  const std::int64_t weights = LayerMatrixParameters(module.transformer);
  EXPECT_EQ(moved(backward) - moved(fused_backward),
            kTokens * (2 * 2 * 4096 + 6 * 14336) + 10 * weights);
  const auto& wgrad = std::get<Gemm>(Named(backward, "fc2 wgrad").kernels[0]);
  EXPECT_EQ(wgrad.output_bytes.value(), 2 * 4096 * 14336);
}

TEST(LayersTest, AnEagerModuleCountsItsLayers) {
  Module module = Llama8b();
  EXPECT_EQ(DescribeWork(Layers(module, 3), Action::kForward).eager_layers, 3);
  module.settings.host_issue = HostIssue::kGraph;
  EXPECT_EQ(DescribeWork(Layers(module, 3), Action::kForward).eager_layers, 0);
}

TEST(LayersTest, WithoutTensorParallelismNothingIsCommunicated) {
  const Module module = Llama8b(TpOverlap::kUserBuffers);
  for (const Action action : {Action::kForward, Action::kBackward}) {
    tests::ForEachSegment(DescribeWork(Layers(module, 1), action),
                          [](const Segment& segment, int) { EXPECT_FALSE(segment.collective); });
  }
}

TEST(LayersTest, OverlapNoneExposesEveryCollective) {
  const Module module = Llama8b(TpOverlap::kNone);
  const Work forward = DescribeWork(Layers(module, 1, 4), Action::kForward);
  EXPECT_EQ(NumCollectives(forward, CollectiveKind::kAllGather, Overlap::kNone), 2);
  EXPECT_EQ(NumCollectives(forward, CollectiveKind::kReduceScatter, Overlap::kNone), 2);
  const Work backward = DescribeWork(Layers(module, 1, 4), Action::kBackward);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kAllGather, Overlap::kNone), 4);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kReduceScatter, Overlap::kNone), 2);
  // nccl-tests' S: the whole gathered buffer, T·h·2.
  EXPECT_EQ(Named(forward, "qkv gather").collective->bytes.value(), kTokens * 4096 * 2);
  EXPECT_EQ(Named(forward, "qkv gather").collective->axes, AxisSet(kTp));
}

TEST(LayersTest, OverlapBulkHidesWhatIsIndependentInTheBackward) {
  const Module module = Llama8b(TpOverlap::kBulk);
  const Work forward = DescribeWork(Layers(module, 1, 4), Action::kForward);
  EXPECT_EQ(NumCollectives(forward, CollectiveKind::kAllGather, Overlap::kNone), 2);
  const Work backward = DescribeWork(Layers(module, 1, 4), Action::kBackward);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kAllGather, Overlap::kNone), 2);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kAllGather, Overlap::kBulk), 2);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kReduceScatter, Overlap::kBulk), 2);
  EXPECT_EQ(Named(backward, "fc1 wgrad").collective->kind, CollectiveKind::kReduceScatter);
}

TEST(LayersTest, UserBuffersFeedGemmsInChunks) {
  const Module module = Llama8b(TpOverlap::kUserBuffers);
  const Work forward = DescribeWork(Layers(module, 1, 4), Action::kForward);
  EXPECT_EQ(Named(forward, "qkv").overlap, Overlap::kGatherIn);
  EXPECT_EQ(Named(forward, "fc1").overlap, Overlap::kGatherIn);
  EXPECT_EQ(Named(forward, "proj").overlap, Overlap::kScatterOut);
  EXPECT_EQ(Named(forward, "fc2").overlap, Overlap::kScatterOut);
  const Work backward = DescribeWork(Layers(module, 1, 4), Action::kBackward);
  EXPECT_EQ(Named(backward, "proj dgrad").overlap, Overlap::kGatherIn);
  EXPECT_EQ(Named(backward, "fc2 dgrad").overlap, Overlap::kGatherIn);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kAllGather, Overlap::kBulk), 2);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kReduceScatter, Overlap::kBulk), 2);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kAllGather, Overlap::kNone), 0);
}

TEST(LayersTest, WithoutSequenceParallelismTwoAllReducesEachWay) {
  const Module bulk = Llama8b(TpOverlap::kUserBuffers, false);
  const Work forward = DescribeWork(Layers(bulk, 1, 4), Action::kForward);
  EXPECT_EQ(NumCollectives(forward, CollectiveKind::kAllReduce, Overlap::kNone), 2);
  const Work backward = DescribeWork(Layers(bulk, 1, 4), Action::kBackward);
  EXPECT_EQ(NumCollectives(backward, CollectiveKind::kAllReduce, Overlap::kBulk), 2);
  const Module none = Llama8b(TpOverlap::kNone, false);
  EXPECT_EQ(NumCollectives(DescribeWork(Layers(none, 1, 4), Action::kBackward),
                           CollectiveKind::kAllReduce, Overlap::kNone),
            2);
  // Norms run on all tokens.
  EXPECT_EQ(MovedBytes(forward, MemoryClass::kNorm), kTokens * 8 * 4096);
}

// fp32 main gradients are read and written: 2·4 B an element; bf16: 2·2.
TEST(LayersTest, WeightGradientsAccumulate) {
  Module module = Llama8b();
  const Work fp32 = DescribeWork(Layers(module, 1), Action::kBackward);
  EXPECT_EQ(std::get<Gemm>(Named(fp32, "fc2 wgrad").kernels[0]).output_bytes.value(),
            8 * 4096 * 14336);
  module.settings.gradient_dtype = DType::kBf16;
  const Work bf16 = DescribeWork(Layers(module, 1), Action::kBackward);
  EXPECT_EQ(std::get<Gemm>(Named(bf16, "fc2 wgrad").kernels[0]).output_bytes.value(),
            4 * 4096 * 14336);
}

TEST(LayersTest, InputAndWeightBackwardShareOutTheWholeBackward) {
  for (const TpOverlap overlap : {TpOverlap::kNone, TpOverlap::kBulk, TpOverlap::kUserBuffers}) {
    const Module module = Llama8b(overlap);
    BlockShape shape = Layers(module, 2, 4);
    shape.block.stem = shape.block.head = true;
    const Work whole = DescribeWork(shape, Action::kBackward);
    const Work input = DescribeWork(shape, Action::kBackwardInput);
    const Work weight = DescribeWork(shape, Action::kBackwardWeight);
    EXPECT_DOUBLE_EQ(GemmFlops(input) + GemmFlops(weight), GemmFlops(whole));
    EXPECT_DOUBLE_EQ((input.model_flops + weight.model_flops).value(), whole.model_flops.value());
    EXPECT_DOUBLE_EQ(AttentionFlops(weight), 0.0);
    const auto all = [](const Work& work, CollectiveKind kind) {
      int found = 0;
      tests::ForEachSegment(work, [&](const Segment& segment, int count) {
        if (segment.collective && segment.collective->kind == kind) found += count;
      });
      return found;
    };
    for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      EXPECT_EQ(all(input, kind) + all(weight, kind), all(whole, kind));
    }
  }
}

TEST(LayersTest, FrozenLayersPassGradientsOnWithoutWeightGradients) {
  const Module module = Llama8b();
  BlockShape shape = Layers(module, 1);
  shape.needs_weight_gradient = false;
  const Work forward = DescribeWork(shape, Action::kForward);
  const Work backward = DescribeWork(shape, Action::kBackward);
  EXPECT_DOUBLE_EQ(GemmFlops(backward), GemmFlops(forward));
  shape.needs_input_gradient = false;
  const Work none = DescribeWork(shape, Action::kBackward);
  EXPECT_TRUE(none.parts.empty());
  EXPECT_EQ(none.model_flops.value(), 0.0);
  EXPECT_EQ(ContextBytes(shape).value(), 0);
}

TEST(LayersTest, AnAbsentBackwardDoesNothingAndKeepsNothing) {
  Module module = tests::Encoder("vit", 4, 1024, 16);
  module.settings.backward = BackwardMode::kAbsent;
  const BlockShape shape = Layers(module, 4);
  EXPECT_TRUE(DescribeWork(shape, Action::kBackward).parts.empty());
  EXPECT_TRUE(DescribeWork(shape, Action::kRecompute).parts.empty());
  EXPECT_EQ(ContextBytes(shape).value(), 0);
  EXPECT_EQ(CheckpointBytes(shape).value(), 0);
  EXPECT_FALSE(DescribeWork(shape, Action::kForward).parts.empty());
}

TEST(LayersTest, RecomputeIsTheForwardOfTheRecomputedLayers) {
  Module module = Llama8b();
  module.settings.recompute = Recompute::kFull;
  BlockShape shape = Layers(module, 4);
  const Work again = DescribeWork(shape, Action::kRecompute);
  EXPECT_EQ(again.hardware_flops, DescribeWork(shape, Action::kForward).hardware_flops);
  EXPECT_EQ(again.model_flops.value(), 0.0);
  shape.recomputed_layers = 1;
  EXPECT_DOUBLE_EQ(DescribeWork(shape, Action::kRecompute).hardware_flops.value(),
                   again.hardware_flops.value() / 4);
}

TEST(LayersTest, SelectiveRecomputeRunsAttentionAgainInsideTheBackward) {
  Module module = Llama8b();
  module.settings.recompute = Recompute::kSelective;
  const Work forward = DescribeWork(Layers(module, 1), Action::kForward);
  const Work backward = DescribeWork(Layers(module, 1), Action::kBackward);
  EXPECT_DOUBLE_EQ(AttentionFlops(backward), 3.5 * AttentionFlops(forward));
  EXPECT_DOUBLE_EQ(backward.model_flops.value(), 2 * forward.model_flops.value());
}

TEST(LayersTest, NoTokensNoWork) {
  const Module module = Llama8b();
  BlockShape shape = Layers(module, 2);
  shape.tokens = 0;
  EXPECT_TRUE(DescribeWork(shape, Action::kForward).parts.empty());
  EXPECT_EQ(ContextBytes(shape).value(), 0);
}

// 27 B of each of the 4,096 + 1,024 elements of q and k, an odd figure that a half of it loses.
TEST(LayersTest, EagerRotaryBackwardCountsEveryByte) {
  Module llama = Llama8b(TpOverlap::kNone, false);
  llama.settings = DefaultSettings(*FindRelease("nanotron"));
  const auto rotary_bytes = [&] {
    const Work work = DescribeWork(Layers(llama, 1), Action::kBackward);
    return std::get<MemoryBound>(Named(work, "rotary backward").kernels.front()).bytes.value();
  };
  EXPECT_EQ(rotary_bytes(), kTokens * 5120 * 27);
  llama.settings.precision = DType::kFp32;
  EXPECT_EQ(rotary_bytes(), kTokens * 5120 * 54);
}

}  // namespace
}  // namespace isthmus::plan
