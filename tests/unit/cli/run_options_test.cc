#include "cli/run_options.h"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunOptions Parsed(std::vector<std::string> arguments) {
  CLI::App app;
  RunOptions options;
  AddRunOptions(app, options);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  app.parse(arguments);
  return options;
}

// What `isthmus run` was asked for reaches every rank.
TEST(RunOptionsTest, RanksReadWhatWasPassedOn) {
  const RunOptions options = {.scenario = "a scenario.yaml",
                              .overrides = {"seed=3", "modules.llm.layout={tp: 2, dp: 1}"},
                              .ranks_on = "gpu",
                              .num_steps = 7,
                              .num_warmup_steps = 3,
                              .trace = "t.isthmus",
                              .checkpoint = "to",
                              .checkpoint_interval = 25,
                              .resume = "from",
                              .timeout_s = 9,
                              .json = true};
  const RunOptions parsed = Parsed(ToArguments(options));
  EXPECT_EQ(parsed.scenario, options.scenario);
  EXPECT_EQ(parsed.overrides, options.overrides);
  EXPECT_EQ(parsed.ranks_on, options.ranks_on);
  EXPECT_EQ(parsed.num_steps, options.num_steps);
  EXPECT_EQ(parsed.num_warmup_steps, options.num_warmup_steps);
  EXPECT_EQ(parsed.trace, options.trace);
  EXPECT_EQ(parsed.checkpoint, options.checkpoint);
  EXPECT_EQ(parsed.checkpoint_interval, 25);
  EXPECT_EQ(parsed.resume, options.resume);
  EXPECT_EQ(parsed.timeout_s, options.timeout_s);
  EXPECT_TRUE(parsed.json);
}

TEST(RunOptionsTest, WhatIsNotSaidIsTheDefault) {
  EXPECT_EQ(ToArguments(Parsed({"x.yaml"})), ToArguments(RunOptions{.scenario = "x.yaml"}));
}

TEST(RunOptionsTest, AProgramOfSeveralStepsIsRunStepByStep) {
  const RunnableScenario runnable = LoadRunnable(
      {.scenario = "scenarios/examples/gpt-8gpu.yaml", .overrides = {"step.num_steps=3"}});
  EXPECT_EQ(runnable.scenario.job.num_steps, 1);
  EXPECT_EQ(runnable.program.num_ranks, 8);
}

// A frozen encoder without a backward has none to be absent.
TEST(RunOptionsTest, WhatCannotRunIsListedAtOnce) {
  const RunOptions options = {
      .scenario = "scenarios/quickstart.yaml",
      .overrides = {"modules.language.precision=fp8", "modules.vision.backward=absent"}};
  try {
    static_cast<void>(LoadRunnable(options));
    FAIL() << "it can't be run";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("modules.language.precision: fp8"),
                                    HasSubstr("modules.vision.backward: absent"),
                                    Not(HasSubstr("modules.vision.precision"))));
  }
  EXPECT_NO_THROW(
      LoadRunnable({.scenario = "scenarios/quickstart.yaml",
                    .overrides = {"modules.vision.backward=absent", "modules.vision.frozen=true",
                                  "modules.vision.projector.frozen=true"}}));
}

}  // namespace
}  // namespace isthmus::cli
