#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/file_io.h"
#include "traces/internal/timeline.h"
#include "traces/proto/perfetto_subset.pb.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// Draws a timeline as packets of one sequence of Perfetto's native form.
///
/// Picoseconds become nanoseconds by rounding down, begins and ends alike, so that order and
/// nesting stay. Names, categories and annotation texts are interned.
class PerfettoRenderer final : public TimelineRenderer {
 public:
  /// The file must outlive the renderer; OnFinish commits it.
  explicit PerfettoRenderer(base::AtomicFile& file) : file_(file) {}

  void OnRun(const Header& header) override;
  void OnProcess(const TimelineProcess& process) override;
  void OnTrack(const TimelineTrack& track) override;
  void OnSliceBegin(const TimelineSlice& slice) override;
  void OnSliceEnd(std::uint32_t track, std::int64_t end_ps, std::uint64_t arrival) override;
  void OnMemory(ProcessId process, std::int64_t time_ps, std::int64_t bytes) override;
  void OnFinish() override { file_.Commit(); }

 private:
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard asks for it
  };
  // Texts of one kind by number, 1 …; looked up, never walked.
  using Numbers = std::unordered_map<std::string, std::uint64_t, TextHash, std::equal_to<>>;
  std::uint64_t NumberOf(std::string_view text, Numbers& numbers,
                         perfetto::InternedString* (perfetto::InternedData::*add)());
  perfetto::TrackEvent& StartEvent(std::int64_t time_ps);
  void Annotate(const Annotation& annotation, perfetto::TrackEvent& event);
  void WritePacket();

  base::AtomicFile& file_;
  perfetto::TracePacket packet_;  // being filled
  std::string bytes_;             // of a packet
  bool is_first_ = true;
  std::int64_t first_thread_ = 1;
  Numbers names_;
  Numbers categories_;
  Numbers annotation_names_;
  Numbers annotation_texts_;
};

/// A trace file for Perfetto.
class PerfettoWriter final : public TraceSink {
 public:
  explicit PerfettoWriter(const std::filesystem::path& path) : file_(path) {}

  void OnHeader(const Header& header) override { timeline_.OnHeader(header); }
  void OnEvents(std::span<const Event> events) override { timeline_.OnEvents(events); }
  void OnMemory(std::span<const MemoryCounter> counters) override { timeline_.OnMemory(counters); }
  void OnTrailer(const Trailer& trailer) override {
    PerfettoRenderer renderer(file_);
    timeline_.Draw(trailer, renderer);
  }

 private:
  base::AtomicFile file_;
  Timeline timeline_;
};

}  // namespace isthmus::traces::internal
