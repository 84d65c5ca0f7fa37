#include "traces/trace_file.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_io.h"
#include "base/random.h"
#include "tests/support/test_folder.h"
#include "tests/unit/traces/small_trace.h"

namespace isthmus::traces {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

fs::path Folder() {
  fs::path folder = tests::TestFolder() / "trace_file_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string ErrorOfReading(const fs::path& path) {
  Recorder recorder;
  try {
    ReadTraceFile(path, recorder);
  } catch (const base::IoError& error) {
    return std::string("IoError: ") + error.what();
  } catch (const base::Error& error) {
    EXPECT_FALSE(recorder.complete());
    return error.what();
  }
  return "no error";
}

std::string StoredSmallTrace(const fs::path& path) {
  Replay(SmallTrace(), *OpenTraceFile(path));
  return base::ReadFile(path);
}

TEST(TraceFileTest, UnknownEndingsListTheKnownOnes) {
  for (const auto& [path, what] :
       {std::pair{"run.xml", "\".xml\" is"}, {"run", "no ending names"}}) {
    try {
      OpenTraceFile(path);
      ADD_FAILURE() << path;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.what(),
                std::string(path) + ": " + what +
                    " no kind of trace file\n  hint: use one of .isthmus, .pftrace, .json, .jsonl, "
                    ".csv");
    }
  }
}

TEST(TraceFileTest, NothingAppearsWithoutATrailer) {
  const fs::path folder = Folder();
  for (const char* ending : {".isthmus", ".pftrace", ".json", ".jsonl", ".csv"}) {
    const fs::path path = folder / (std::string("run") + ending);
    const Trace trace = SmallTrace();
    const auto sink = OpenTraceFile(path);
    sink->OnHeader(trace.header);
    sink->OnEvents(trace.events);
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(TraceFileTest, AnOlderFileStaysUntilTheTrailer) {
  const fs::path path = Folder() / "run.csv";
  base::WriteFile(path, "older");
  const Trace trace = SmallTrace();
  const auto sink = OpenTraceFile(path);
  sink->OnHeader(trace.header);
  EXPECT_EQ(base::ReadFile(path), "older");
  sink->OnTrailer(trace.trailer);
  EXPECT_NE(base::ReadFile(path), "older");
}

TEST(TraceFileTest, AFolderThatIsAFileIsAnIoError) {
  const fs::path folder = Folder();
  base::WriteFile(folder / "file", "");
  for (const char* ending : {".isthmus", ".pftrace", ".json", ".jsonl", ".csv"}) {
    EXPECT_THROW(OpenTraceFile(folder / "file" / (std::string("run") + ending)), base::IoError);
  }
}

// While it lives, no file of this process may grow past `bytes`: what a full disk does.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(TraceFileTest, AFullDiskIsAnIoErrorAndLeavesNothing) {
  const fs::path folder = Folder();
  for (const char* ending : {".isthmus", ".pftrace", ".json", ".jsonl", ".csv"}) {
    SCOPED_TRACE(ending);
    const fs::path path = folder / (std::string("run") + ending);
    const FullDisk full(100);
    const auto write = [&] { Replay(SmallTrace(), *OpenTraceFile(path)); };
    EXPECT_THROW(write(), base::IoError);
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(TraceFileTest, WhatIsNoTraceIsSaidSo) {
  const fs::path folder = Folder();
  EXPECT_EQ(ErrorOfReading(folder / "lost.isthmus"),
            (folder / "lost.isthmus").string() + ": cannot be read: No such file or directory");
  EXPECT_EQ(ErrorOfReading(folder), folder.string() + ": is a folder, not a trace");
  const fs::path path = folder / "foreign.isthmus";
  base::WriteFile(path, "{\"traceEvents\":[]}");
  EXPECT_EQ(ErrorOfReading(path), path.string() +
                                      ": byte 0: not an Isthmus trace: it starts with "
                                      "\"{\"traceE\", not with \"ISTHMUS1\"");
  base::WriteFile(path, "");
  EXPECT_THAT(ErrorOfReading(path), HasSubstr("byte 0: not an Isthmus trace"));
  base::WriteFile(path, "ISTHMUS2and more");
  EXPECT_THAT(ErrorOfReading(path),
              HasSubstr("byte 0: version 2 of the trace format; this program reads version 1"));
}

TEST(TraceFileTest, EveryCutIsFound) {
  const fs::path path = Folder() / "cut.isthmus";
  const std::string whole = StoredSmallTrace(path);
  ASSERT_EQ(LoadTraceFile(path), SmallTrace());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    fs::remove(path);  // a new file is cheaper than an emptied one, which some disks write at once
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_THAT(ErrorOfReading(path), HasSubstr("cut.isthmus: byte ")) << size;
  }
  base::WriteFile(path, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(ErrorOfReading(path),
              HasSubstr("the file ends 1 bytes before the end of this block"));
  base::WriteFile(path, whole.substr(0, 8));
  EXPECT_THAT(
      ErrorOfReading(path),
      HasSubstr("byte 8: the file ends without a trailer: it was cut off or never completed"));
  base::WriteFile(path, whole.substr(0, 10));
  EXPECT_THAT(ErrorOfReading(path),
              HasSubstr("byte 8: the file ends within the length of a block"));
  base::WriteFile(path, whole + whole.substr(8));
  EXPECT_THAT(ErrorOfReading(path), HasSubstr("the file goes on after its trailer"));
}

TEST(TraceFileTest, AChangedByteIsFoundByTheChecksum) {
  const fs::path path = Folder() / "changed.isthmus";
  std::string bytes = StoredSmallTrace(path);
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
  base::WriteFile(path, bytes);
  EXPECT_THAT(ErrorOfReading(path), HasSubstr("the block is damaged ("));
}

// A run like the simulator's: 64 ranks go through 1F1B-like ops; times of microseconds to
// milliseconds with no pattern in their last digits, ranks interleaved by time.
Trace LongTrace() {
  constexpr std::uint32_t kNumRanks = 64;
  constexpr std::uint32_t kNumOps = 4000;
  Trace trace;
  trace.header.modules.push_back({.name = "llm", .kind = "llm", .layout = ""});
  RoleRecord& role = trace.header.roles.emplace_back();
  role.lanes = {{"compute", "compute"}};
  role.ops.resize(kNumOps);
  base::RandomStream random(5, "durations");
  std::vector<std::int64_t> clocks(kNumRanks, 0);
  for (std::uint32_t rank = 0; rank < kNumRanks; ++rank) {
    RankClass& rank_class = trace.header.classes.emplace_back();
    rank_class.representative = static_cast<std::int32_t>(rank);
  }
  for (std::uint32_t op = 0; op < kNumOps; ++op) {
    for (std::uint32_t rank = 0; rank < kNumRanks; ++rank) {
      Event event{.rank_class = rank, .op = op, .issue_ps = clocks[rank]};
      event.start_ps = event.issue_ps + (op % 3 == 0 ? random.UniformInt(0, 100'000'000) : 0);
      event.end_ps = event.start_ps + random.UniformInt(5'000'000, 5'000'000'000);
      clocks[rank] = event.end_ps;
      trace.events.push_back(event);
    }
  }
  return trace;
}

TEST(TraceFileTest, AnEventTakesAtMost32Bytes) {
  const fs::path path = Folder() / "long.isthmus";
  const Trace trace = LongTrace();
  Trace empty = trace;
  empty.events.clear();
  Replay(empty, *OpenTraceFile(path));
  const auto without = static_cast<double>(fs::file_size(path));
  Replay(trace, *OpenTraceFile(path));
  const auto with = static_cast<double>(fs::file_size(path));
  const double bytes_per_event = (with - without) / static_cast<double>(trace.events.size());
  RecordProperty("bytes_per_event", std::to_string(bytes_per_event));
  EXPECT_LE(bytes_per_event, 32.0);
  // A duration alone holds log2(5e9) = 32 random bits: with fewer than 4 bytes some were lost.
  EXPECT_GE(bytes_per_event, 4.0);
  EXPECT_EQ(LoadTraceFile(path), trace);
}

}  // namespace
}  // namespace isthmus::traces
