#include "plan/model/flops.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/support/model_catalogue.h"

namespace isthmus::plan {
namespace {

// The multimodal paper's harness prints 52,694,681,024,200,704 for 3B + 70B, batch 16 of 8,192
// tokens, half of them vision: 6·(P_llm·131072 + P_enc·65536).
TEST(FlopsTest, ParameterConventionIsTheHarnesss) {
  const Module vit = tests::Encoder("vit-3b", 48, 2304, 32);
  const Module llm = tests::Gpt("llm-70b", 80, 8192, 64, 128000);
  const std::array<ModuleTokens, 2> step{{{.module = &vit, .tokens = 65536, .span = 1024},
                                          {.module = &llm, .tokens = 131072, .span = 8192}}};
  EXPECT_EQ(StepFlops(FlopConvention::kParameters, step).value(), 52'694'681'024'200'704.0);
}

// Llama-3 8B at 8,192: matrices 2·6.98 G, head 2·h·V = 1.05 G, attention 4·s·h·L = 4.29 G a token.
TEST(FlopsTest, FullAttentionConventionIsThreeForwards) {
  const Module llama = tests::Llama("8b", 32, 4096, 14336, 32);
  const double per_token = 2.0 * 32 * (4096.0 * 6144 + 4096.0 * 4096 + 3.0 * 4096 * 14336) +
                           4.0 * 32 * 8192 * 4096 + 2.0 * 4096 * 128256;
  const ModuleTokens what{.module = &llama, .tokens = 16384, .span = 8192};
  EXPECT_DOUBLE_EQ(ModuleFlops(FlopConvention::kFullAttention, what).value(),
                   3 * per_token * 16384);
}

// The README of the runs finds 0.889 for sources that halve the attention at this shape.
TEST(FlopsTest, CausalConventionHalvesTheAttention) {
  const Module llama = tests::Llama("8b", 32, 4096, 14336, 32);
  const ModuleTokens what{.module = &llama, .tokens = 16384, .span = 8192};
  const double causal = ModuleFlops(FlopConvention::kCausal, what).value();
  const double full = ModuleFlops(FlopConvention::kFullAttention, what).value();
  EXPECT_NEAR(causal / full, 0.889, 0.001);
  EXPECT_DOUBLE_EQ(full - causal, 3 * 2.0 * 32 * 8192 * 4096 * 16384);
}

TEST(FlopsTest, FrozenModulesCountOnlyWhatRuns) {
  const Module vit = tests::Encoder("vit", 4, 1024, 16);
  ModuleTokens what{.module = &vit, .tokens = 4096, .span = 1024};
  const double trained = ModuleFlops(FlopConvention::kCausal, what).value();
  what.needs_weight_gradient = what.needs_input_gradient = false;
  EXPECT_DOUBLE_EQ(ModuleFlops(FlopConvention::kCausal, what).value(), trained / 3);
}

TEST(FlopsTest, ConventionsHaveNames) {
  EXPECT_STREQ(ToText(FlopConvention::kCausal), "causal");
  EXPECT_STREQ(ToText(FlopConvention::kFullAttention), "full_attention");
  EXPECT_STREQ(ToText(FlopConvention::kParameters), "parameters");
}

}  // namespace
}  // namespace isthmus::plan
