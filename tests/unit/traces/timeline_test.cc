#include "traces/internal/timeline.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/traces/small_trace.h"

namespace isthmus::traces::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Keeps a drawing as lines "track: [name", "track: ]" in the order drawn, with times in ps.
class Lines final : public TimelineRenderer {
 public:
  void OnRun(const Header& /*header*/) override {}
  void OnProcess(const TimelineProcess& process) override { processes.push_back(process.name); }
  void OnTrack(const TimelineTrack& track) override {
    tracks.push_back(track.name);
    lanes.push_back(track.is_lane);
  }
  void OnSliceBegin(const TimelineSlice& slice) override {
    if (tracks[slice.track - 1] == "steps") return;
    lines.push_back(fmt::format("{}: {} [{}", tracks[slice.track - 1], slice.start_ps, slice.name));
    if (slice.arrives_late()) lines.back() += " late";
  }
  void OnSliceEnd(std::uint32_t track, std::int64_t end_ps, std::uint64_t arrival) override {
    if (tracks[track - 1] == "steps") return;
    lines.push_back(fmt::format("{}: {} ]", tracks[track - 1], end_ps));
    if (arrival != 0) lines.back() += " late";
  }
  void OnMemory(ProcessId process, std::int64_t time_ps, std::int64_t bytes) override {
    memory.push_back(fmt::format("{}: {} {}", process, time_ps, bytes));
  }
  void OnFinish() override { finished = true; }

  std::vector<std::string> LinesOf(const std::string& track) const {
    std::vector<std::string> result;
    for (const std::string& line : lines) {
      if (line.starts_with(track + ": ")) result.push_back(line.substr(track.size() + 2));
    }
    return result;
  }

  std::vector<std::string> processes;
  std::vector<std::string> tracks;
  std::vector<bool> lanes;
  std::vector<std::string> lines;
  std::vector<std::string> memory;
  bool finished = false;
};

Lines Draw(const Trace& trace) {
  Timeline timeline;
  timeline.OnHeader(trace.header);
  timeline.OnEvents(trace.events);
  timeline.OnMemory(trace.counters);
  Lines lines;
  timeline.Draw(trace.trailer, lines);
  return lines;
}

// One rank, one lane "compute" with `num_ops` ops named by their index.
Trace OneLane(std::uint32_t num_ops) {
  Trace trace;
  trace.header.modules.push_back({.name = "llm", .kind = "llm", .layout = ""});
  RoleRecord& role = trace.header.roles.emplace_back();
  role.lanes = {{"compute", "compute"}};
  for (std::uint32_t op = 0; op < num_ops; ++op) {
    role.ops.emplace_back().name = std::to_string(op);
  }
  trace.header.classes.emplace_back();
  return trace;
}

Event At(std::uint32_t op, std::uint32_t inner, std::int64_t start_ps, std::int64_t end_ps) {
  return {.op = op, .inner = inner, .issue_ps = start_ps, .start_ps = start_ps, .end_ps = end_ps};
}

TEST(TimelineTest, PiecesNestAndWaitsFollowTheirOp) {
  Trace trace = SmallTrace();
  // Rank 0 goes on with its forward after the wait, so that the wait is due before it.
  trace.events.push_back(At(0, 0, 6000, 7000));
  trace.header.roles[0].ops.push_back(trace.header.roles[0].ops[0]);
  trace.events.back().op = 2;
  const Lines lines = Draw(trace);
  EXPECT_THAT(lines.processes, ElementsAre("rank 0: llm stage 0", "rank 1: llm stage 1"));
  EXPECT_THAT(lines.tracks, ElementsAre("steps", "p2p send", "compute", "p2p receive", "compute"));
  EXPECT_THAT(lines.lanes, ElementsAre(true, false, true, false, true));
  EXPECT_THAT(
      lines.lines,
      ElementsAre("p2p send: 6000 [send forward", "compute: 1000 [forward", "compute: 1000 [qkv",
                  "compute: 3000 ]", "compute: 3000 [out", "p2p receive: 6000 [receive forward",
                  "compute: 8000 [backward", "compute: 5000 ]", "compute: 5000 ]",
                  "compute: 5000 [straggler wait", "compute: 6000 ]", "compute: 6000 [forward",
                  "compute: 7000 ]", "p2p send: 8000 ]", "compute: 9500 ]", "p2p receive: 8000 ]"));
  EXPECT_THAT(lines.memory, ElementsAre("2: 6000 64"));
  EXPECT_TRUE(lines.finished);
}

TEST(TimelineTest, PiecesMayComeBeforeTheirOp) {
  Trace trace = OneLane(1);
  trace.events = {At(0, 3, 4, 9), At(0, 1, 0, 4), At(0, 0, 0, 9)};
  EXPECT_THAT(Draw(trace).LinesOf("compute"),
              ElementsAre("0 [0", "0 [piece 0", "4 ]", "4 [piece 1", "9 ]", "9 ]"));
}

TEST(TimelineTest, WhatOverlapsGoesToAFurtherTrack) {
  Trace trace = OneLane(4);
  // 1 runs into 2; 3 fits behind 0 again.
  trace.events = {At(0, 0, 0, 4), At(1, 0, 4, 8), At(2, 0, 6, 10), At(3, 0, 8, 9)};
  const Lines lines = Draw(trace);
  EXPECT_THAT(lines.LinesOf("compute"), ElementsAre("0 [0", "4 ]", "4 [1", "8 ]", "8 [3", "9 ]"));
  EXPECT_THAT(lines.LinesOf("compute (2)"), ElementsAre("6 [2", "10 ]"));
  EXPECT_THAT(lines.lanes, ElementsAre(true, false));
}

TEST(TimelineTest, AnEarlierStartNeverTurnsATrackBack) {
  Trace trace = OneLane(2);
  trace.events = {At(1, 0, 5, 7), At(0, 0, 0, 3)};
  const Lines lines = Draw(trace);
  EXPECT_THAT(lines.LinesOf("compute"), ElementsAre("5 [1", "7 ]"));
  EXPECT_THAT(lines.LinesOf("compute (2)"), ElementsAre("0 [0", "3 ]"));
}

TEST(TimelineTest, AReceiveThatBeganBeforeItsSendTakesTheFlowAtItsEnd) {
  Trace trace = SmallTrace();
  trace.events[6].start_ps = 5500;  // the send starts at 6000
  const Lines lines = Draw(trace);
  EXPECT_THAT(lines.LinesOf("p2p receive"),
              ElementsAre("5500 [receive forward late", "8000 ] late"));
}

TEST(TimelineTest, AWaitThatOverlapsLeavesTheOpsInPlace) {
  Trace trace = OneLane(2);
  trace.events = {At(0, 0, 0, 4), At(1, 0, 4, 8)};
  trace.trailer.waits = {{.rank_class = 0, .op = 0, .start_ps = 3, .end_ps = 6}};
  const Lines lines = Draw(trace);
  EXPECT_THAT(lines.LinesOf("compute"), ElementsAre("0 [0", "4 ]", "4 [1", "8 ]"));
  EXPECT_THAT(lines.LinesOf("compute (2)"), ElementsAre("3 [straggler wait", "6 ]"));
}

TEST(TimelineTest, ARunWithoutEventsIsDrawn) {
  const Lines lines = Draw(OneLane(0));
  EXPECT_THAT(lines.lines, IsEmpty());
  EXPECT_TRUE(lines.finished);
}

// What a GPU's profiler saw, on a track of its own below the lanes; two streams overlap.
TEST(TimelineTest, KernelsHaveATrackOfTheirOwn) {
  Trace trace = OneLane(1);
  trace.events = {At(0, 0, 0, 60)};
  trace.trailer.kernel_names = {"gemm", "add"};
  trace.trailer.kernels = {{.name = 0, .stream = 7, .start_ps = 10, .end_ps = 30},
                           {.name = 1, .stream = 13, .start_ps = 20, .end_ps = 40},
                           {.name = 1, .stream = 7, .start_ps = 40, .end_ps = 50}};
  const Lines lines = Draw(trace);
  EXPECT_THAT(lines.LinesOf("kernels"), ElementsAre("10 [gemm", "30 ]", "40 [add", "50 ]"));
  EXPECT_THAT(lines.LinesOf("kernels (2)"), ElementsAre("20 [add", "40 ]"));
}

}  // namespace
}  // namespace isthmus::traces::internal
