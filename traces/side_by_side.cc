#include "traces/side_by_side.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "base/file_io.h"
#include "traces/internal/perfetto_writer.h"
#include "traces/internal/timeline.h"

namespace isthmus::traces {
namespace {

using internal::ProcessId;
using internal::TimelineProcess;
using internal::TimelineRenderer;
using internal::TimelineSlice;
using internal::TimelineTrack;

// Draws one of several traces into a picture: its processes, tracks and flows get numbers of their
// own, and its processes the name of its side.
class OneSide final : public TimelineRenderer {
 public:
  OneSide(const Header& header, const char* name, int side, std::uint32_t first_track,
          std::uint64_t first_flow, TimelineRenderer& picture)
      : header_(header),
        name_(name),
        side_(side),
        first_track_(first_track),
        first_flow_(first_flow),
        picture_(picture) {}

  std::uint32_t num_tracks() const { return num_tracks_; }
  std::uint64_t num_flows() const { return num_flows_; }

  void OnRun(const Header&) override {}  // the picture has begun
  void OnFinish() override {}            // and goes on
  void OnProcess(const TimelineProcess& process) override {
    const RankClass& rank_class = header_.classes[static_cast<std::size_t>(process.id) - 1];
    picture_.OnProcess(
        {Process(process.id), fmt::format("rank {} {}: {}", rank_class.representative, name_,
                                          header_.roles[rank_class.role].name)});
  }
  void OnTrack(const TimelineTrack& track) override {
    TimelineTrack own = track;
    own.id = Track(track.id);
    own.process = Process(track.process);
    if (track.process == 0) own.name += fmt::format(" {}", name_);
    num_tracks_ = std::max(num_tracks_, track.id);
    picture_.OnTrack(own);
  }
  void OnSliceBegin(const TimelineSlice& slice) override {
    TimelineSlice own = slice;
    own.track = Track(slice.track);
    own.process = Process(slice.process);
    for (std::uint64_t& flow : own.departures) flow = Flow(flow);
    own.arrival = Flow(slice.arrival);
    picture_.OnSliceBegin(own);
  }
  void OnSliceEnd(std::uint32_t track, std::int64_t end_ps, std::uint64_t arrival) override {
    picture_.OnSliceEnd(Track(track), end_ps, Flow(arrival));
  }
  void OnMemory(ProcessId process, std::int64_t time_ps, std::int64_t bytes) override {
    picture_.OnMemory(Process(process), time_ps, bytes);
  }

 private:
  // 1, 3, 5 … of one side, 2, 4, 6 … of the other; 0 is the run.
  ProcessId Process(ProcessId process) const {
    return process == 0 ? 0 : 2 * (process - 1) + 1 + side_;
  }
  std::uint32_t Track(std::uint32_t track) const { return first_track_ + track; }
  std::uint64_t Flow(std::uint64_t flow) {
    if (flow == 0) return 0;
    num_flows_ = std::max(num_flows_, flow);
    return first_flow_ + flow;
  }

  const Header& header_;
  const char* name_;
  int side_;
  std::uint32_t first_track_;
  std::uint64_t first_flow_;
  TimelineRenderer& picture_;
  std::uint32_t num_tracks_ = 0;
  std::uint64_t num_flows_ = 0;
};

void CheckRanks(const Header& header) {
  for (std::size_t index = 0; index < header.classes.size(); ++index) {
    ISTHMUS_CHECK(header.classes[index].representative == static_cast<std::int32_t>(index),
                  "class {} of a trace to show is of rank {}", index,
                  header.classes[index].representative);
  }
}

void Draw(const Trace& trace, TimelineRenderer& side) {
  internal::Timeline timeline;
  timeline.OnHeader(trace.header);
  timeline.OnEvents(trace.events);
  timeline.OnMemory(trace.counters);
  timeline.Draw(trace.trailer, side);
}

// The run as the picture introduces it: as many processes as both sides have.
Header BothSides(const Header& predicted) {
  Header header;
  header.scenario_name = predicted.scenario_name;
  for (std::size_t index = 0; index < 2 * predicted.classes.size(); ++index) {
    header.classes.emplace_back().representative = static_cast<std::int32_t>(index);
  }
  return header;
}

}  // namespace

void WriteSideBySide(const Trace& predicted, const Trace& measured,
                     const std::filesystem::path& path) {
  if (path.extension() != ".pftrace") {
    throw base::Error(
        fmt::format("{}: both traces in one file are written for Perfetto only\n  "
                    "hint: name it .pftrace",
                    path.string()));
  }
  CheckRanks(predicted.header);
  CheckRanks(measured.header);
  base::AtomicFile file(path);
  internal::PerfettoRenderer picture(file);
  picture.OnRun(BothSides(predicted.header));
  OneSide first(predicted.header, "predicted", 0, 0, 0, picture);
  Draw(predicted, first);
  OneSide second(measured.header, "measured", 1, first.num_tracks(), first.num_flows(), picture);
  Draw(measured, second);
  picture.OnFinish();
}

}  // namespace isthmus::traces
