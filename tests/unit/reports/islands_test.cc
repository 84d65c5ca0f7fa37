#include "reports/islands.h"

#include <vector>

#include <gtest/gtest.h>

namespace isthmus::reports {
namespace {

traces::Header EncoderBesideLlm(std::int32_t first_rank_of_llm) {
  traces::Header header;
  header.island_flops_limit = 600e12;
  header.modules = {
      {.name = "vision", .kind = "vit", .first_rank = 0, .num_ranks = 8},
      {.name = "llm", .kind = "decoder", .first_rank = first_rank_of_llm, .num_ranks = 16}};
  for (const std::uint16_t module : {std::uint16_t{0}, std::uint16_t{1}}) {
    traces::RoleRecord& role = header.roles.emplace_back();
    for (int microbatch = 0; microbatch < 2; ++microbatch) {
      traces::OpRecord op;
      op.kind = "compute";
      op.module = module;
      op.hardware_flops = 150;  // 300 a step
      role.ops.push_back(op);
    }
  }
  header.classes = {{.representative = 0, .role = 0}, {.representative = 8, .role = 1}};
  return header;
}

std::vector<traces::Event> Busy(std::int64_t vision_ps, std::int64_t llm_ps) {
  return {{0, 0, 0, 0, 0, vision_ps},
          {0, 1, 0, vision_ps, vision_ps, 2 * vision_ps},
          {1, 0, 0, 0, 0, llm_ps},
          {1, 1, 0, llm_ps, llm_ps, 2 * llm_ps}};
}

// Two microbatches of 200 ps against 400 ps; 300 FLOP in the LLM's 800 ps are 0.375 TFLOPS.
TEST(IslandsTest, AnEncoderIsMeasuredAgainstTheLlmsSlot) {
  Islands islands;
  islands.OnHeader(EncoderBesideLlm(8));
  islands.OnEvents(Busy(200, 400));
  ASSERT_EQ(islands.figures().size(), 1U);
  const IslandFigure figure = islands.figures()[0];
  EXPECT_EQ(figure.module, "vision");
  EXPECT_DOUBLE_EQ(figure.utilisation, 0.5);
  EXPECT_NEAR(figure.tflops_per_gpu, 300 / 400e-12 / 1e12, 1e-9);
  EXPECT_NEAR(figure.needed_tflops_per_gpu, 300 / 800e-12 / 1e12, 1e-9);
  EXPECT_FALSE(figure.is_saturated());
}

TEST(IslandsTest, AnEncoderSlowerThanTheLlmIsSaturated) {
  Islands islands;
  islands.OnHeader(EncoderBesideLlm(8));
  islands.OnEvents(Busy(500, 400));
  EXPECT_TRUE(islands.figures()[0].is_saturated());
}

TEST(IslandsTest, EncodersOnTheLlmsRanksAreNoIslands) {
  Islands islands;
  islands.OnHeader(EncoderBesideLlm(0));
  islands.OnEvents(Busy(500, 400));
  EXPECT_TRUE(islands.figures().empty());
}

}  // namespace
}  // namespace isthmus::reports
