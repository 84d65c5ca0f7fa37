#include "plan/model/layers.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/model_catalogue.h"
#include "tests/support/work_sums.h"

namespace isthmus::plan {
namespace {

using base::RandomStream;

constexpr int kCases = 500;

// A module whose widths every tp up to 8 divides, and a block of it.
struct Case {
  Module module;
  BlockShape shape;  // tp = cp = 1, tokens a multiple of 2·8·8
};

Case DrawCase(RandomStream& random) {
  Case drawn;
  const std::int64_t heads = 8 * random.UniformInt(1, 8);
  const std::int64_t head_dim = 32 * random.UniformInt(1, 4);
  drawn.module = tests::Gpt("m", 1, heads * head_dim, heads, 1024 * random.UniformInt(1, 8));
  Transformer& t = drawn.module.transformer;
  if (random.Chance(0.3)) drawn.module.kind = ModuleKind::kVit;
  t.ffn_hidden = 64 * random.UniformInt(4, 200);
  t.num_kv_heads = random.Chance(0.5) ? heads : 8;
  t.gated_mlp = random.Chance(0.5);
  t.rotary = random.Chance(0.5);
  t.qk_norm = random.Chance(0.3);
  t.hidden_dropout = random.Chance(0.3) ? 0.1 : 0.0;
  ModuleSettings& settings = drawn.module.settings;
  settings.tp_overlap = static_cast<TpOverlap>(random.UniformInt(0, 2));
  settings.sequence_parallel = random.Chance(0.7);
  settings.recompute = random.Chance(0.2) ? Recompute::kSelective : Recompute::kNone;
  const std::span<const FrameworkRelease> releases = FrameworkReleases();
  settings.framework = &random.Pick(releases);
  const bool fp8 = settings.framework->memory->saved_fp8 != nullptr && random.Chance(0.4);
  settings.precision = fp8 ? DType::kFp8 : DType::kBf16;
  settings.context_parallel =
      random.Chance(0.5) ? ContextParallel::kRing : ContextParallel::kAllGather;
  settings.loss = static_cast<LossKernel>(random.UniformInt(0, 2));
  drawn.shape.block.num_layers = static_cast<int>(random.UniformInt(1, 4));
  drawn.shape.block.stem = random.Chance(0.5);
  drawn.shape.block.head = drawn.module.kind == ModuleKind::kDecoder && random.Chance(0.5);
  drawn.shape.span = 128 * random.UniformInt(1, 32);
  drawn.shape.tokens = drawn.shape.span * random.UniformInt(1, 3);
  return drawn;
}

template <typename Check>
void ForRandomCases(const char* purpose, const Check& check) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, purpose);
    Case drawn = DrawCase(random);
    drawn.shape.module = &drawn.module;
    check(drawn, random);
    if (testing::Test::HasFailure()) return;
  }
}

int DrawDegree(RandomStream& random) {
  static constexpr std::array kDegrees = {1, 2, 4, 8};
  return random.Pick(std::span<const int>(kDegrees));
}

using Volume = std::pair<CollectiveKind, std::int64_t>;

std::vector<Volume> Collectives(const Work& work) {
  std::vector<Volume> found;
  tests::ForEachSegment(work, [&](const Segment& segment, int count) {
    for (int copy = 0; copy < count; ++copy) {
      if (segment.collective) {
        found.emplace_back(segment.collective->kind, segment.collective->bytes.value());
      }
    }
  });
  std::sort(found.begin(), found.end());
  return found;
}

TEST(LayersProperty, RanksOfATpAndCpGroupShareTheWorkOfOneRank) {
  ForRandomCases("layers.share", [](Case& drawn, RandomStream& random) {
    const BlockShape& whole = drawn.shape;
    BlockShape part = whole;
    part.tp = DrawDegree(random);
    part.cp = DrawDegree(random);
    part.tokens = whole.tokens / part.cp;
    const std::int64_t ranks = std::int64_t{part.tp} * part.cp;
    for (const Action action : {Action::kForward, Action::kBackward}) {
      const Work all = DescribeWork(whole, action);
      const Work one = DescribeWork(part, action);
      const auto near = [](double value) { return 1e-12 * value; };
      EXPECT_NEAR(static_cast<double>(ranks) * one.model_flops.value(), all.model_flops.value(),
                  near(all.model_flops.value()));
      EXPECT_NEAR(static_cast<double>(ranks) * one.hardware_flops.value(),
                  all.hardware_flops.value(), near(all.hardware_flops.value()));
    }
    // Code without Transformer Engine keeps some tensors whole on every rank of the tp group.
    const bool shares = drawn.module.settings.framework->memory->saved_fp8 != nullptr;
    if (shares && drawn.module.settings.sequence_parallel && !part.block.stem) {
      EXPECT_EQ(ranks * ContextBytes(part).value(), ContextBytes(whole).value());
    }
    EXPECT_GE(ranks * ContextBytes(part).value(), ContextBytes(whole).value());
  });
}

TEST(LayersProperty, InputAndWeightPassesAreTheBackward) {
  ForRandomCases("layers.split", [](Case& drawn, RandomStream& random) {
    BlockShape shape = drawn.shape;
    shape.tp = DrawDegree(random);
    const Work whole = DescribeWork(shape, Action::kBackward);
    const Work input = DescribeWork(shape, Action::kBackwardInput);
    const Work weight = DescribeWork(shape, Action::kBackwardWeight);
    EXPECT_DOUBLE_EQ((input.hardware_flops + weight.hardware_flops).value(),
                     whole.hardware_flops.value());
    for (const MemoryClass memory_class :
         {MemoryClass::kElementwise, MemoryClass::kNormBackward, MemoryClass::kHeadNormBackward,
          MemoryClass::kCast, MemoryClass::kCrossEntropy}) {
      EXPECT_EQ(tests::MovedBytes(input, memory_class) + tests::MovedBytes(weight, memory_class),
                tests::MovedBytes(whole, memory_class));
    }
    std::vector<Volume> both = Collectives(input);
    for (const Volume& volume : Collectives(weight)) both.push_back(volume);
    std::sort(both.begin(), both.end());
    EXPECT_EQ(both, Collectives(whole));
  });
}

TEST(LayersProperty, OverlapChangesWhenCollectivesRunAndNotWhich) {
  ForRandomCases("layers.overlap", [](Case& drawn, RandomStream& random) {
    drawn.module.settings.precision = DType::kBf16;  // fp8 user buffers gather bytes
    BlockShape shape = drawn.shape;
    shape.tp = DrawDegree(random);
    for (const Action action : {Action::kForward, Action::kBackward}) {
      drawn.module.settings.tp_overlap = TpOverlap::kNone;
      const Work none = DescribeWork(shape, action);
      for (const TpOverlap overlap : {TpOverlap::kBulk, TpOverlap::kUserBuffers}) {
        drawn.module.settings.tp_overlap = overlap;
        const Work other = DescribeWork(shape, action);
        EXPECT_EQ(Collectives(other), Collectives(none));
        EXPECT_EQ(other.hardware_flops, none.hardware_flops);
      }
      if (shape.tp == 1) {
        EXPECT_TRUE(Collectives(none).empty());
      }
    }
  });
}

TEST(LayersProperty, SegmentsAreWellFormed) {
  ForRandomCases("layers.form", [](Case& drawn, RandomStream& random) {
    BlockShape shape = drawn.shape;
    shape.tp = DrawDegree(random);
    shape.cp = DrawDegree(random);
    shape.tokens /= shape.cp;
    for (const Action action : {Action::kForward, Action::kBackward, Action::kBackwardWeight}) {
      tests::ForEachSegment(DescribeWork(shape, action), [](const Segment& segment, int count) {
        EXPECT_GE(count, 1);
        EXPECT_STRNE(segment.name, "");
        EXPECT_TRUE(segment.collective || !segment.kernels.empty()) << segment.name;
        const bool pair = segment.collective && !segment.kernels.empty();
        EXPECT_EQ(pair, segment.overlap != Overlap::kNone) << segment.name;
        if (segment.collective) {
          EXPECT_GT(segment.collective->bytes.value(), 0) << segment.name;
        }
        if (segment.overlap == Overlap::kRing) {
          EXPECT_EQ(segment.kernels.size(),
                    static_cast<std::size_t>(segment.collective->steps) + 1);
        }
      });
    }
  });
}

}  // namespace
}  // namespace isthmus::plan
