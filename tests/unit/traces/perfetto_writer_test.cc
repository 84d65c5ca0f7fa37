#include "traces/internal/perfetto_writer.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <gtest/gtest.h>

#include "tests/support/test_folder.h"
#include "tests/unit/traces/small_trace.h"
#include "traces/side_by_side.h"

namespace isthmus::traces::internal {
namespace {

using perfetto::TrackEvent;
using testing::_;
using testing::ElementsAre;
using testing::Pair;

std::vector<perfetto::TracePacket> PacketsIn(const std::filesystem::path& path) {
  const std::string bytes = base::ReadFile(path);
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  std::vector<perfetto::TracePacket> packets;
  while (const std::uint32_t tag = input.ReadTag()) {
    EXPECT_EQ(tag, 0x0AU);
    std::uint32_t size = 0;
    std::string packet;
    EXPECT_TRUE(input.ReadVarint32(&size) && input.ReadString(&packet, static_cast<int>(size)));
    EXPECT_TRUE(packets.emplace_back().ParseFromString(packet));
  }
  return packets;
}

std::vector<perfetto::TracePacket> PacketsOf(const Trace& trace) {
  const auto path = tests::TestFolder() / "perfetto_writer_test.pftrace";
  {
    PerfettoWriter writer(path);
    Replay(trace, writer);
  }
  return PacketsIn(path);
}

struct Point {
  TrackEvent::Type type;
  std::uint64_t time_ns;
  bool operator==(const Point&) const = default;
};

// The begins and ends of the track of that name.
std::vector<Point> PointsOf(const std::vector<perfetto::TracePacket>& packets,
                            const std::string& lane) {
  std::uint64_t wanted = 0;
  std::vector<Point> points;
  for (const perfetto::TracePacket& packet : packets) {
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    if (wanted == 0 && (track.name() == lane || track.thread().thread_name() == lane)) {
      wanted = track.uuid();
    }
    if (packet.has_track_event() && packet.track_event().track_uuid() == wanted) {
      points.push_back({packet.track_event().type(), packet.timestamp()});
    }
  }
  return points;
}

TEST(PerfettoWriterTest, PicosecondsRoundDownWithoutLosingOrder) {
  // 1.9 ns … 2.1 ns with pieces that meet at 2.0 ns and 2.05 ns: begins and ends at 1 or 2 ns.
  Trace trace = SmallTrace();
  trace.events.resize(3);
  trace.events[0] = {.issue_ps = 1900, .start_ps = 1900, .end_ps = 2100};
  trace.events[1] = {.inner = 1, .issue_ps = 1900, .start_ps = 1900, .end_ps = 2050};
  trace.events[2] = {.inner = 3, .issue_ps = 2050, .start_ps = 2050, .end_ps = 2100};
  trace.trailer.waits.clear();
  constexpr auto kBegin = TrackEvent::TYPE_SLICE_BEGIN;
  constexpr auto kEnd = TrackEvent::TYPE_SLICE_END;
  EXPECT_THAT(PointsOf(PacketsOf(trace), "compute"),
              ElementsAre(Point{kBegin, 1}, Point{kBegin, 1}, Point{kEnd, 2}, Point{kBegin, 2},
                          Point{kEnd, 2}, Point{kEnd, 2}));
}

TEST(PerfettoWriterTest, ASendsFlowEndsInItsReceive) {
  std::vector<std::uint64_t> started;
  std::vector<std::uint64_t> ended;
  for (const perfetto::TracePacket& packet : PacketsOf(SmallTrace())) {
    for (const std::uint64_t flow : packet.track_event().flow_ids()) started.push_back(flow);
    for (const std::uint64_t flow : packet.track_event().terminating_flow_ids()) {
      ended.push_back(flow);
    }
  }
  EXPECT_THAT(started, ElementsAre(2));
  EXPECT_THAT(ended, ElementsAre(2));
}

TEST(PerfettoWriterTest, MemoryIsACounterInBytesOfTheProcess) {
  const std::vector<perfetto::TracePacket> packets = PacketsOf(SmallTrace());
  std::vector<std::int64_t> values;
  for (const perfetto::TracePacket& packet : packets) {
    if (packet.track_event().type() != TrackEvent::TYPE_COUNTER) continue;
    EXPECT_EQ(packet.timestamp(), 6U);
    values.push_back(packet.track_event().counter_value());
    for (const perfetto::TracePacket& other : packets) {
      const perfetto::TrackDescriptor& track = other.track_descriptor();
      if (track.uuid() != packet.track_event().track_uuid() || track.uuid() == 0) continue;
      EXPECT_EQ(track.counter().unit(), perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
    }
  }
  EXPECT_THAT(values, ElementsAre(64));
}

TEST(PerfettoWriterTest, ATextIsSpelledOutOnce) {
  Trace trace = SmallTrace();
  for (int repeat = 0; repeat < 100; ++repeat) trace.events.push_back(trace.events[7]);
  int spelled = 0;
  for (const perfetto::TracePacket& packet : PacketsOf(trace)) {
    for (const perfetto::InternedString& name : packet.interned_data().event_names()) {
      if (name.text() == "backward") ++spelled;
    }
  }
  EXPECT_EQ(spelled, 1);
}

// Two traces in one file keep apart: twice the processes, tracks and messages of one.
TEST(SideBySideTest, ShowsEveryRankOfBothSides) {
  const Trace predicted = SmallTrace();
  Trace measured = SmallTrace();
  for (Event& event : measured.events) event.end_ps += 500;
  const auto path = tests::TestFolder() / "side_by_side_test.pftrace";
  WriteSideBySide(predicted, measured, path);

  std::vector<std::string> processes;
  std::set<std::uint64_t> tracks;
  std::set<std::int64_t> threads;
  std::map<std::uint64_t, int> flows;  // + 1 where it starts, - 1 where it ends
  int num_slices = 0;
  for (const perfetto::TracePacket& packet : PacketsIn(path)) {
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    if (track.has_process()) processes.push_back(track.process().process_name());
    if (track.has_uuid()) {
      EXPECT_TRUE(tracks.insert(track.uuid()).second) << track.uuid();
    }
    if (track.has_thread()) {
      EXPECT_TRUE(threads.insert(track.thread().tid()).second);
    }
    if (!packet.has_track_event()) continue;
    EXPECT_TRUE(tracks.contains(packet.track_event().track_uuid()));
    num_slices += packet.track_event().type() == TrackEvent::TYPE_SLICE_BEGIN ? 1 : 0;
    for (const std::uint64_t flow : packet.track_event().flow_ids()) ++flows[flow];
    for (const std::uint64_t flow : packet.track_event().terminating_flow_ids()) --flows[flow];
  }
  EXPECT_THAT(processes,
              ElementsAre("rank 0 predicted: llm stage 0", "rank 1 predicted: llm stage 1",
                          "rank 0 measured: llm stage 0", "rank 1 measured: llm stage 1"));
  // Of each side: a step, two ops, two pieces, a wait, and both ends of the message.
  EXPECT_EQ(num_slices, 2 * 8);
  EXPECT_THAT(flows, ElementsAre(Pair(_, 0), Pair(_, 0)));
}

}  // namespace
}  // namespace isthmus::traces::internal
