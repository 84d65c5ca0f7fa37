// Random traces through every form a trace file has.

#include "traces/trace_file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/random_trace.h"
#include "tests/support/test_folder.h"

namespace isthmus::traces {
namespace {

namespace fs = std::filesystem;

fs::path TemporaryFolder(const char* name) {
  fs::path folder = tests::TestFolder() / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

TEST(TraceFileProperty, StoredTracesComeBackAsTheyWere) {
  const fs::path folder = TemporaryFolder("trace_file_round_trip");
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    base::RandomStream random(seed, "shape");
    const Trace trace = tests_support::MakeRandomTrace(
        seed, {.num_classes = static_cast<int>(random.UniformInt(1, 9)),
               .num_actions = static_cast<int>(random.UniformInt(0, 400)),
               .skewed_clocks = random.Chance(0.5)});
    const fs::path path = folder / "run.isthmus";
    Replay(trace, *OpenTraceFile(path));
    EXPECT_EQ(LoadTraceFile(path), trace);
  }
}

TEST(TraceFileProperty, EqualRunsGiveEqualFiles) {
  const fs::path folder = TemporaryFolder("trace_file_equal");
  const Trace trace = tests_support::MakeRandomTrace(7, {});
  for (const char* ending : {".isthmus", ".pftrace", ".json", ".jsonl", ".csv"}) {
    SCOPED_TRACE(ending);
    const fs::path first = folder / (std::string("first") + ending);
    const fs::path second = folder / (std::string("second") + ending);
    Replay(trace, *OpenTraceFile(first));
    Replay(trace, *OpenTraceFile(second));
    EXPECT_GT(fs::file_size(first), 0U);
    EXPECT_EQ(ContentOf(first), ContentOf(second));
  }
}

TEST(TraceFileProperty, LongRunsCrossBlocks) {
  // More entries than one block holds (32768), handed over in portions of any size.
  const fs::path path = TemporaryFolder("trace_file_long") / "run.isthmus";
  const Trace trace = tests_support::MakeRandomTrace(3, {.num_classes = 8, .num_actions = 90'000});
  ASSERT_GT(trace.events.size(), 3U * 32768U);
  const auto sink = OpenTraceFile(path);
  sink->OnHeader(trace.header);
  base::RandomStream random(3, "portions");
  for (std::size_t first = 0; first < trace.events.size();) {
    const auto wanted = static_cast<std::size_t>(random.UniformInt(0, 50'000));
    const std::size_t count = std::min(wanted, trace.events.size() - first);
    sink->OnEvents(std::span(trace.events).subspan(first, count));
    first += count;
  }
  sink->OnMemory(trace.counters);
  sink->OnTrailer(trace.trailer);
  EXPECT_EQ(LoadTraceFile(path), trace);
}

}  // namespace
}  // namespace isthmus::traces
