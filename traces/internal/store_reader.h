#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "traces/internal/block.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// Reads the stored form block by block and gives it to a sink.
///
/// Every index that a block holds is checked before the sink sees it. Used once.
/// Lifetime: the sink must outlive the reader.
class StoreReader {
 public:
  StoreReader(std::filesystem::path path, TraceSink& sink);

  /// Throws base::Error with the path, and the offset of the block at fault.
  void Read();

 private:
  /// The next block's bytes; false at the end of the file.
  bool ReadBlock(std::string& bytes);
  std::string ReadBytes(std::size_t size);
  void CheckStart();
  Defect Take(const proto::Block& block);
  Defect TakeHeaderPart(const proto::Block& block);
  Defect TakeEvents(const proto::Events& columns);
  Defect TakeCounters(const proto::MemoryCounters& columns);
  Defect TakeTrailer(const proto::Trailer& message);
  Defect FinishHeader();
  [[noreturn]] void Fail(const std::string& what) const;

  std::filesystem::path path_;
  TraceSink& sink_;
  std::ifstream file_;
  std::uint64_t offset_ = 0;       // of the next byte
  std::uint64_t block_start_ = 0;  // where the block being read begins
  Header header_;
  bool has_header_ = false;
  std::uint64_t roles_left_ = 0;
  std::uint64_t ops_left_ = 0;  // of the last role
  bool header_given_ = false;
  std::optional<Trailer> trailer_;  // given to the sink when nothing follows it
  std::vector<Event> events_;
  std::vector<MemoryCounter> counters_;
};

}  // namespace isthmus::traces::internal
