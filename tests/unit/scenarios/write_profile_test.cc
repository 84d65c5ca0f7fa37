#include "scenarios/write_profile.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

TEST(WriteProfile, ComesBackAsTheSameParameters) {
  profiles::ProfileBuilder builder("here", "2026-11-30");
  builder.Set("host.cores", {.value = 2,
                             .unit = "1",
                             .mark = profiles::Mark::kMeasured,
                             .source = "a \"quoted\" C:\\path"});
  builder.Set("cpu.dispatch", {.value = 1.0 / 3e6,
                               .unit = "s",
                               .mark = profiles::Mark::kFitted,
                               .source = "rows",
                               .residual = profiles::Residual{0.1, 0.25, 7}});
  builder.Set("copy.ratio", {.value = 0.5,
                             .unit = "1",
                             .mark = profiles::Mark::kChosenAfterSeeingRuns,
                             .source = "runs",
                             .strict = 0.25});
  const profiles::Profile profile = std::move(builder).Build();
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "written_profile.yaml";
  const std::string text = WriteProfile(
      profile, {.command = "isthmus calibrate", .machine = "one, 2 cores", .versions = "torch"});
  std::ofstream(path) << text;
  const profiles::Profile back = LoadProfile(path.string());
  EXPECT_EQ(back.name(), "here");
  EXPECT_EQ(back.date(), "2026-11-30");
  EXPECT_EQ(back.Hash(), profile.Hash());
  EXPECT_THAT(text, ::testing::HasSubstr("  machine: \"one, 2 cores\"\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("commit")));
}

}  // namespace
}  // namespace isthmus::scenarios
