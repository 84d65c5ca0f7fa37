#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/file_io.h"
#include "traces/internal/timeline.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// Draws a timeline as Chrome's trace events (JSON object form), one event a line.
///
/// Times are microseconds with six decimals, which is exact.
class ChromeRenderer final : public TimelineRenderer {
 public:
  /// The file must outlive the renderer; OnFinish commits it.
  explicit ChromeRenderer(base::AtomicFile& file) : file_(file) {}

  void OnRun(const Header& header) override;
  void OnProcess(const TimelineProcess& process) override;
  void OnTrack(const TimelineTrack& track) override;
  void OnSliceBegin(const TimelineSlice& slice) override;
  void OnSliceEnd(std::uint32_t track, std::int64_t end_ps, std::uint64_t arrival) override;
  void OnMemory(ProcessId process, std::int64_t time_ps, std::int64_t bytes) override;
  void OnFinish() override;

 private:
  void WriteEvent(std::string_view event);
  void WriteMetadata(const char* what, ProcessId process, std::uint32_t track,
                     std::string_view argument);
  void WriteFlow(char phase, std::uint64_t flow, const TimelineSlice& slice, std::int64_t time_ps);
  const std::string& Quoted(std::string_view text);

  base::AtomicFile& file_;
  bool is_first_ = true;
  std::map<std::string, std::string, std::less<>> quoted_;  // texts recur
};

/// A trace file for viewers of Chrome's trace events.
class ChromeWriter final : public TraceSink {
 public:
  explicit ChromeWriter(const std::filesystem::path& path) : file_(path) {}

  void OnHeader(const Header& header) override { timeline_.OnHeader(header); }
  void OnEvents(std::span<const Event> events) override { timeline_.OnEvents(events); }
  void OnMemory(std::span<const MemoryCounter> counters) override { timeline_.OnMemory(counters); }
  void OnTrailer(const Trailer& trailer) override {
    ChromeRenderer renderer(file_);
    timeline_.Draw(trailer, renderer);
  }

 private:
  base::AtomicFile file_;
  Timeline timeline_;
};

}  // namespace isthmus::traces::internal
