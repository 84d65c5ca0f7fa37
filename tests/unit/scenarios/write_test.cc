#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

using testing::HasSubstr;
using testing::Not;

ScenarioSpec SmallSpec() {
  ScenarioSpec spec;
  spec.name = "small";
  spec.cluster_preset = "h100-dgx";
  spec.num_gpus = 8;
  spec.workload = {.sequence_length = 1024, .global_batch = 8};
  ModuleSpec& llm = spec.modules.emplace_back();
  llm.name = "llm";
  llm.model = {.name = "tiny, 2 layers",
               .source = "made up",
               .num_layers = 2,
               .hidden = 512,
               .ffn_hidden = 2048,
               .num_heads = 8,
               .vocab_size = 1024};
  llm.layout.tp = 2;
  return spec;
}

// A model's kind has no default to fall back on, so it is written even where it equals that of a
// fresh ModelSpec.
TEST(WriteScenarioTest, WhatEveryFileMustSayIsWritten) {
  const std::string text = WriteScenario(SmallSpec());
  EXPECT_THAT(text, HasSubstr("kind: decoder"));
  EXPECT_THAT(text, Not(HasSubstr("vpp")));  // equals its default
}

TEST(WriteScenarioTest, AWrittenScenarioLoadsAsTheSpecItWasMadeFrom) {
  const Scenario scenario = ParseScenario(SmallSpec());
  EXPECT_EQ(scenario.name, "small");
  EXPECT_EQ(scenario.job.num_ranks, 8);
  EXPECT_EQ(scenario.job.modules.front().transformer.hidden, 512);
  EXPECT_EQ(scenario.job.modules.front().layout->dp, 4);
  EXPECT_EQ(ParseScenario(WriteScenario(SmallSpec()), "again.yaml").hash, scenario.hash);
}

// Keys that equal the release's default are left out, those that equal the general one are not.
TEST(WriteScenarioTest, TheDefaultsAreThoseOfTheFramework) {
  ScenarioSpec spec = SmallSpec();
  spec.framework = plan::FindRelease("nanotron");
  spec.modules.front().settings = plan::DefaultSettings(*spec.framework);
  spec.modules.front().settings.tp_overlap = plan::TpOverlap::kUserBuffers;
  const std::string text = WriteScenario(spec);
  EXPECT_THAT(text, HasSubstr("framework: nanotron"));
  EXPECT_THAT(text, HasSubstr("tp_overlap: user_buffers"));
  EXPECT_THAT(text, HasSubstr("overlap_grad_reduce: true"));
  EXPECT_THAT(text, Not(HasSubstr("loss")));
  EXPECT_EQ(ParseScenario(text, "again.yaml").hash, ParseScenario(spec).hash);
}

}  // namespace
}  // namespace isthmus::scenarios
