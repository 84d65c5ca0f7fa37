// Ranks that meet over TCP, as processes do; here they are threads.

#include "backend/torch/run_rank.h"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/launch/internal/port.h"
#include "base/error.h"
#include "tests/support/program_jobs.h"
#include "traces/check_measured.h"
#include "traces/trace_file.h"

namespace isthmus::backend {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

plan::Program TinyProgram(const plan::Layout& layout) {
  plan::Module llm = tests::Gpt("llm", 2, 32, 4, 64);
  llm.transformer.ffn_hidden = 64;
  llm.transformer.max_positions = 16;
  llm.settings.precision = plan::DType::kFp32;
  llm.layout = layout;
  plan::Job job = tests::JobOf(plan::Placement::kHomogeneous, {llm}, 2);
  job.workload.sequence_length = 16;
  return plan::Build(job);
}

RankRunOptions OptionsOf(int rank, std::uint16_t port) {
  RankRunOptions options;
  options.environment = {.rank = rank,
                         .world_size = 2,
                         .local_rank = rank,
                         .local_world_size = 2,
                         .master_port = port};
  options.data = DataSource::kRandom;
  options.num_steps = 3;
  options.timeout = std::chrono::seconds(20);
  return options;
}

/// Two ranks that meet at a port that is free now.
std::vector<RankRunOptions> BothRanks() {
  const std::uint16_t port = internal::FreePort();
  return {OptionsOf(0, port), OptionsOf(1, port)};
}

/// What each of two ranks threw, or "".
std::vector<std::string> ErrorsOf(const plan::Program& program,
                                  const std::vector<RankRunOptions>& options,
                                  std::vector<RankOutcome>& outcomes) {
  std::vector<std::string> errors(options.size());
  outcomes.resize(options.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < options.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        outcomes[rank] = RunRank(program, base::Rank{rank}, options[rank]);
      } catch (const base::Error& error) {
        errors[rank] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

TEST(RunRankTest, TellsWhatItTrained) {
  std::vector<RankOutcome> outcomes;
  const auto errors = ErrorsOf(TinyProgram({.dp = 2}), BothRanks(), outcomes);
  ASSERT_THAT(errors, Each(""));
  ASSERT_EQ(outcomes[0].steps.size(), 3U);
  EXPECT_EQ(outcomes[0].steps.back().step, 3);
  EXPECT_GT(outcomes[0].steps.front().loss, 0.0);
  EXPECT_GT(outcomes[0].memory_bytes, 0);
  EXPECT_TRUE(outcomes[1].steps.empty());
}

// Every op of both ranks is there, in order, and none ends before it starts.
TEST(RunRankTest, WritesAStepAsATrace) {
  const std::string path = ::testing::TempDir() + "run_rank_test.isthmus";
  std::vector<RankRunOptions> options = BothRanks();
  for (RankRunOptions& rank : options) rank.trace_path = path;
  const plan::Program program = TinyProgram({.pp = 2});
  std::vector<RankOutcome> outcomes;
  ASSERT_THAT(ErrorsOf(program, options, outcomes), Each(""));
  const traces::Trace trace = traces::LoadTraceFile(path);
  std::size_t ops = 0;
  for (const traces::Event& event : trace.events) {
    ops += event.inner == 0 ? 1U : 0U;
    EXPECT_LE(event.issue_ps, event.start_ps);
    EXPECT_LE(event.start_ps, event.end_ps);
  }
  EXPECT_EQ(ops, program.role(base::Rank{0}).ops.size() + program.role(base::Rank{1}).ops.size());
  EXPECT_EQ(trace.header.measurement.step_times_ps.size(), 3U);
  EXPECT_EQ(trace.header.measurement.recorded_step, 2);  // the one behind the warm-up
}

// With collectives that tell from their own thread when they are over, and ones that can't.
TEST(RunRankTest, WritesAStepOfDataParallelRanksAsATrace) {
  const std::string path = ::testing::TempDir() + "run_rank_dp_test.isthmus";
  std::vector<RankRunOptions> options = BothRanks();
  for (RankRunOptions& rank : options) rank.trace_path = path;
  const plan::Program program = TinyProgram({.dp = 2});
  std::vector<RankOutcome> outcomes;
  ASSERT_THAT(ErrorsOf(program, options, outcomes), Each(""));
  const traces::Trace trace = traces::LoadTraceFile(path);
  EXPECT_THAT(traces::CheckMeasured(trace), ::testing::IsEmpty());
}

// Another seed on rank 1: both say so before anything runs.
TEST(RunRankTest, RefusesRanksThatRunSomethingElse) {
  std::vector<RankRunOptions> options = BothRanks();
  options[1].training.seed = 5;
  std::vector<RankOutcome> outcomes;
  EXPECT_THAT(ErrorsOf(TinyProgram({.dp = 2}), options, outcomes),
              Each(HasSubstr("rank 1 runs something else than rank 0: \"seed: 5\", not \"seed: "
                             "1\"")));
}

// Ranks that differ in these would wait for each other until the time is over.
TEST(RunRankTest, RefusesRanksOnOtherDevicesAndWithoutTheTrace) {
  const plan::Program program = TinyProgram({.dp = 2});
  std::vector<RankOutcome> outcomes;
  std::vector<RankRunOptions> options = BothRanks();
  options[1].device = DeviceKind::kGpu;
  EXPECT_THAT(ErrorsOf(program, options, outcomes),
              Each(HasSubstr("\"ranks on: gpu\", not \"ranks on: cpu\"")));
  options = BothRanks();
  options[0].trace_path = ::testing::TempDir() + "one_sided.isthmus";
  EXPECT_THAT(ErrorsOf(program, options, outcomes),
              Each(HasSubstr("\"trace: none\", not \"trace: written\"")));
}

// Port 1 of nobody's address (RFC 5737).
TEST(RunRankTest, SaysWhereRanksDidNotMeet) {
  std::vector<RankRunOptions> options{OptionsOf(1, 1)};
  options[0].timeout = std::chrono::seconds(1);
  options[0].environment.master_address = "192.0.2.1";
  std::vector<RankOutcome> outcomes;
  EXPECT_THAT(ErrorsOf(TinyProgram({.dp = 2}), options, outcomes),
              Each(HasSubstr("did not meet at 192.0.2.1:1")));
}

}  // namespace
}  // namespace isthmus::backend
