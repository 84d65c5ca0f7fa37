// Random traces as Perfetto shows them: decoded with the published schema by a script
// (tests/support/perfetto_check.py), which holds the rules; the counts are checked here.

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/random_trace.h"
#include "tests/support/test_folder.h"
#include "traces/trace_file.h"

namespace isthmus::traces {
namespace {

namespace fs = std::filesystem;

struct ScriptResult {
  int exit_code = 0;
  std::string output;
};

ScriptResult RunCheck(const fs::path& file) {
  const std::string command = std::string(ISTHMUS_SOURCE_DIR) + "/tests/run_python.sh " +
                              ISTHMUS_SOURCE_DIR + "/tests/support/perfetto_check.py " +
                              file.string() + " 2>&1";
  ScriptResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {1, "cannot run " + command};
  std::array<char, 4096> chunk{};
  while (const std::size_t size = fread(chunk.data(), 1, chunk.size(), pipe)) {
    result.output.append(chunk.data(), size);
  }
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return result;
}

// An op whose transfers are drawn stands for nothing itself; one with pieces is drawn with them.
// Waits, kernels and steps are slices too.
std::int64_t CountSlices(const Trace& trace) {
  const std::int64_t drawn =
      std::count_if(trace.events.begin(), trace.events.end(), [&](const Event& event) {
        const RankClass& rank_class = trace.header.classes[event.rank_class];
        const OpRecord& op = trace.header.roles[rank_class.role].ops[event.op];
        return op.transfers.empty() || event.inner > 0;
      });
  const Trailer& trailer = trace.trailer;
  return drawn + static_cast<std::int64_t>(trailer.waits.size() + trailer.kernels.size() +
                                           trailer.step_end_ps.size());
}

class PerfettoTraceProperty : public testing::TestWithParam<std::uint64_t> {};

TEST_P(PerfettoTraceProperty, IsWhatTheViewerExpects) {
  const std::uint64_t seed = GetParam();
  const Trace trace = tests_support::MakeRandomTrace(
      seed, {.num_classes = 5, .num_actions = 400, .skewed_clocks = seed % 2 == 0});
  const fs::path path = tests::TestFolder() / ("random_" + std::to_string(seed) + ".pftrace");
  Replay(trace, *OpenTraceFile(path));

  const ScriptResult result = RunCheck(path);
  if (result.exit_code == 77) GTEST_SKIP() << result.output;
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto found = nlohmann::json::parse(result.output);
  EXPECT_EQ(found["slices"], CountSlices(trace));
  EXPECT_EQ(found["waits"], trace.trailer.waits.size());
  EXPECT_EQ(found["flows"], tests_support::CountReceives(trace));
  EXPECT_EQ(found["counters"], trace.counters.size());
  EXPECT_EQ(found["processes"].size(), 5U);
  EXPECT_GT(found["flows"], 50);
  if (trace.header.expanded) {
    EXPECT_GT(found["nested"], 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PerfettoTraceProperty, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace isthmus::traces
