#include "plan/model/framework.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "plan/model/module.h"

namespace isthmus::plan {
namespace {

TEST(FrameworkTest, EveryReleaseIsFoundByItsNameAndKnowsItsTensors) {
  std::set<std::string_view> names;
  for (const FrameworkRelease& release : FrameworkReleases()) {
    EXPECT_TRUE(names.insert(release.name).second) << release.name;
    EXPECT_EQ(FindRelease(release.name), &release);
    EXPECT_NE(release.memory->saved, nullptr) << release.name;
    EXPECT_FALSE(release.reasons.empty()) << release.name;
  }
  EXPECT_EQ(FindRelease("megatron-core"), &DefaultFramework());
  EXPECT_EQ(FindRelease("megatron"), nullptr);
}

// A module that says nothing runs as Megatron-Core does, whichever way it was made.
TEST(FrameworkTest, TheDefaultReleaseIsWhatSettingsAreWithoutAny) {
  const ModuleSettings fresh;
  const ModuleSettings core = DefaultSettings(DefaultFramework());
  EXPECT_EQ(core.framework, fresh.framework);
  EXPECT_EQ(core.attention, fresh.attention);
  EXPECT_EQ(core.loss, fresh.loss);
  EXPECT_EQ(core.gradient_dtype, fresh.gradient_dtype);
  EXPECT_EQ(core.tp_overlap, fresh.tp_overlap);
  EXPECT_EQ(core.sequence_parallel, fresh.sequence_parallel);
}

// modelling_runs §5: bf16 gradients in NVIDIA's benchmark recipes, fp32 otherwise.
TEST(FrameworkTest, VendorRecipesReduceInBf16) {
  EXPECT_EQ(FindRelease("nemo-24.11")->defaults.gradient_dtype, DType::kBf16);
  EXPECT_EQ(FindRelease("megatron-core")->defaults.gradient_dtype, DType::kFp32);
  EXPECT_EQ(FindRelease("nanotron")->defaults.gradient_dtype, DType::kFp32);
}

}  // namespace
}  // namespace isthmus::plan
