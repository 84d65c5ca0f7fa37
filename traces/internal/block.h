#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/proto/trace.pb.h"
#include "traces/trace.h"

/// Blocks of the stored form (proto/trace.proto): their compression and their columns.
///
/// Functions that read give the defect they met in words, or nothing; the caller knows the file and
/// the place in it.
namespace isthmus::traces::internal {

inline constexpr std::string_view kFileStart = "ISTHMUS1";

/// Events or counters in one block: large enough to compress well, small enough to stream.
inline constexpr std::size_t kBlockEntries = 32768;

/// What a block may hold uncompressed. Writers stay far below it; readers refuse more.
inline constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 28U;

using Defect = std::optional<std::string>;

/// The block as one zstd frame with a checksum.
std::string Compress(const proto::Block& block);
Defect Decompress(std::string_view bytes, proto::Block& block);

/// Columns are relative to the block's start, so each block can be read by itself.
/// Need rank classes below `num_classes`.
void Encode(std::span<const Event> events, std::size_t num_classes, proto::Events& columns);
void Encode(std::span<const MemoryCounter> counters, std::size_t num_classes,
            proto::MemoryCounters& columns);

/// Append to `events` and `counters`. A rank class of `num_classes` or more is a defect; ops and
/// times are taken as they are.
Defect Decode(const proto::Events& columns, std::size_t num_classes, std::vector<Event>& events);
Defect Decode(const proto::MemoryCounters& columns, std::size_t num_classes,
              std::vector<MemoryCounter>& counters);

}  // namespace isthmus::traces::internal
