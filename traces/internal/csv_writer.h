#pragma once

#include <filesystem>
#include <string>

#include "base/file_io.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// The table of events, with what the header says about each, one a line (RFC 4180, lines end in a
/// bare line feed). A cell is empty where the column doesn't apply. Memory: the header.
class CsvWriter final : public TraceSink {
 public:
  explicit CsvWriter(const std::filesystem::path& path) : file_(path) {}

  void OnHeader(const Header& header) override;
  void OnEvents(std::span<const Event> events) override;
  void OnMemory(std::span<const MemoryCounter> counters) override;
  void OnTrailer(const Trailer& trailer) override;

 private:
  std::string LineOf(const Event& event) const;

  base::AtomicFile file_;
  Header header_;
};

}  // namespace isthmus::traces::internal
