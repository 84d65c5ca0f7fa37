#pragma once

#include <filesystem>
#include <vector>

#include "base/file_io.h"
#include "traces/internal/block.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// Writes the stored form block by block; the file appears with its trailer.
///
/// Memory: the header and two blocks of entries, whatever the length of the run.
class StoreWriter final : public TraceSink {
 public:
  explicit StoreWriter(const std::filesystem::path& path) : file_(path) {}

  void OnHeader(const Header& header) override;
  void OnEvents(std::span<const Event> events) override;
  void OnMemory(std::span<const MemoryCounter> counters) override;
  void OnTrailer(const Trailer& trailer) override;

 private:
  void WriteBlock(const proto::Block& block);
  void FlushEvents();
  void FlushCounters();

  base::AtomicFile file_;
  Header header_;
  std::vector<Event> events_;
  std::vector<MemoryCounter> counters_;
};

}  // namespace isthmus::traces::internal
