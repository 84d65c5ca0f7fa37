#pragma once

#include <filesystem>
#include <string_view>

#include "base/file_io.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// The trace as JSON, one object a line: {"header":…}, then {"event":…} and {"memory":…} as they
/// come, and {"trailer":…}. Keys are the names of trace.h, with categories as their texts.
/// Memory: one line.
class JsonLinesWriter final : public TraceSink {
 public:
  explicit JsonLinesWriter(const std::filesystem::path& path) : file_(path) {}

  void OnHeader(const Header& header) override;
  void OnEvents(std::span<const Event> events) override;
  void OnMemory(std::span<const MemoryCounter> counters) override;
  void OnTrailer(const Trailer& trailer) override;

 private:
  base::AtomicFile file_;
};

}  // namespace isthmus::traces::internal
