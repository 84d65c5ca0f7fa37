#include "plan/model/module.h"

#include <gtest/gtest.h>

#include "tests/support/model_catalogue.h"

namespace isthmus::plan {
namespace {

using tests::Encoder;
using tests::Gpt;
using tests::Llama;

// The multimodal paper's catalogue: L(12h² + 4h) + h·V, printed to two or three digits.
TEST(ModuleTest, CatalogueParametersAreWithinOnePercentOfThePrintedOnes) {
  struct Row {
    Module module;
    double printed;
  };
  const Row rows[] = {{Encoder("vit-1b", 40, 1408, 16), 0.95e9},
                      {Encoder("vit-3b", 48, 2304, 32), 3.06e9},
                      {Encoder("vit-6b", 48, 3072, 24), 5.4e9},
                      {Encoder("vit-12b", 60, 4096, 32), 12.1e9},
                      {Gpt("llm-7b", 32, 4096, 32, 128000), 7.0e9},
                      {Gpt("llm-14b", 48, 5120, 40, 128000), 15.8e9},
                      {Gpt("llm-32b", 64, 6144, 48, 128000), 29.8e9},
                      {Gpt("llm-70b", 80, 8192, 64, 128000), 65.5e9}};
  for (const Row& row : rows) {
    EXPECT_NEAR(static_cast<double>(TotalParameters(row.module.transformer)) / row.printed, 1.0,
                0.01)
        << row.module.name;
  }
}

// Published counts of the checkpoints, to the parameter.
TEST(ModuleTest, LlamaParametersAreExact) {
  EXPECT_EQ(TotalParameters(Llama("8b", 32, 4096, 14336, 32).transformer), 8'030'261'248);
  EXPECT_EQ(TotalParameters(Llama("70b", 80, 8192, 28672, 64).transformer), 70'553'706'496);
  EXPECT_EQ(TotalParameters(Llama("405b", 126, 16384, 53248, 128).transformer), 405'853'388'800);
}

// 96 layers of 12·12288² + 4·12288, 51,200 words, 2,048 positions: 174.6 B.
TEST(ModuleTest, Gpt3HasAHundredAndSeventyFiveBillion) {
  Module gpt = Gpt("gpt3", 96, 12288, 96, 51200);
  gpt.transformer.max_positions = 2048;
  EXPECT_NEAR(static_cast<double>(TotalParameters(gpt.transformer)), 174.6e9, 0.1e9);
}

TEST(ModuleTest, ProjectorCountsItsLinearLayers) {
  EXPECT_EQ(ProjectorParameters({.num_layers = 1}, 1024, 4096), 1024 * 4096);
  // 1024 → 5120 → 5120 → 4096
  EXPECT_EQ(ProjectorParameters({.num_layers = 3, .hidden = 5120}, 1024, 4096),
            1024 * 5120 + 5120 * 5120 + 5120 * 4096);
  // The inner width defaults to the LLM's.
  EXPECT_EQ(ProjectorParameters({.num_layers = 2}, 1024, 4096), 1024 * 4096 + 4096 * 4096);
}

// Activations stay in 16 bit; weights too, unless fp8 is all there is of them.
TEST(ModuleTest, Fp8RunsKeepSixteenBits) {
  ModuleSettings settings;
  settings.precision = DType::kFp8;
  EXPECT_EQ(ActivationType(settings), DType::kBf16);
  EXPECT_EQ(ParameterType(settings), DType::kBf16);
  settings.fp8_primary_weights = true;
  EXPECT_EQ(ActivationType(settings), DType::kBf16);
  EXPECT_EQ(ParameterType(settings), DType::kFp8);
  settings.precision = DType::kFp32;
  settings.fp8_primary_weights = false;
  EXPECT_EQ(ParameterType(settings), DType::kFp32);
}

}  // namespace
}  // namespace isthmus::plan
