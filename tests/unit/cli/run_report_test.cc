#include "cli/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace isthmus::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const RunOptions kOptions = {.scenario = "scenarios/examples/gpt-8gpu.yaml",
                             .checkpoint = "out/checkpoint"};

// Two steps of 64 samples of 8192 tokens; the median of a step is half a second.
const backend::RankOutcome kOutcome = {
    .steps = {{.step = 11,
               .loss = 4.5,
               .step_s = 0.4,
               .tokens_per_s = 1e6,
               .loss_scale = 65536.0,
               .skipped = true},
              {.step = 12, .loss = 4.25, .step_s = 0.5, .tokens_per_s = 1e6}},
    .median_step_s = 0.5,
    .memory_bytes = 3 << 20};

TEST(RunReportTest, PeopleReadLossTimeThroughputAndMemory) {
  EXPECT_THAT(RenderRun(kOptions, LoadRunnable(kOptions), kOutcome),
              AllOf(HasSubstr("gpt-8gpu  homogeneous, 8 ranks on cpu, 2 steps\n"),
                    HasSubstr("4.5 at step 11, 4.25 at step 12\n"), HasSubstr("500 ms"),
                    HasSubstr("1,048,576 tokens/s"),  // 64 * 8192 / 0.5 s
                    HasSubstr("3.00 MiB"), HasSubstr("skipped     1 step, overflow\n"),
                    HasSubstr("checkpoint  out/checkpoint\n")));
}

TEST(RunReportTest, ProgramsReadEveryStep) {
  RunOptions options = kOptions;
  options.json = true;
  const auto json = nlohmann::json::parse(RenderRun(options, LoadRunnable(options), kOutcome));
  EXPECT_EQ(json["scenario"]["name"], "gpt-8gpu");
  EXPECT_EQ(json["num_ranks"], 8);
  EXPECT_EQ(json["step_time_s"], 0.5);
  EXPECT_EQ(json["tokens_per_s"], 1048576.0);
  EXPECT_EQ(json["num_skipped"], 1);
  EXPECT_EQ(json["steps"].size(), 2U);
  EXPECT_EQ(json["steps"][0]["step"], 11);
  EXPECT_EQ(json["steps"][0]["skipped"], true);
  EXPECT_EQ(json["steps"][1]["loss"], 4.25);
  EXPECT_EQ(json["checkpoint"], "out/checkpoint");
  EXPECT_FALSE(json.contains("trace"));
}

}  // namespace
}  // namespace isthmus::cli
