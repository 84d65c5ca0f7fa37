#include "traces/internal/block.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <zstd.h>

#include "base/check.h"

namespace isthmus::traces::internal {
namespace {

constexpr int kCompressionLevel = 3;

// Differences wrap around, so that every pair of values has one and the sum gives the value back.
std::int64_t Difference(std::int64_t to, std::int64_t from) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) -
                                   static_cast<std::uint64_t>(from));
}
std::int64_t Sum(std::int64_t from, std::int64_t difference) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) +
                                   static_cast<std::uint64_t>(difference));
}
std::int32_t Difference(std::uint32_t to, std::uint32_t from) {
  return static_cast<std::int32_t>(to - from);
}
std::uint32_t Sum(std::uint32_t from, std::int32_t difference) {
  return from + static_cast<std::uint32_t>(difference);
}

std::string ClassDefect(std::uint32_t rank_class, std::size_t num_classes) {
  return fmt::format("names rank class {}, and the trace has {}", rank_class, num_classes);
}

}  // namespace

std::string Compress(const proto::Block& block) {
  const std::string plain = block.SerializeAsString();
  ISTHMUS_CHECK(plain.size() <= kMaxBlockBytes, "block of {} bytes", plain.size());
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     &ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string bytes(ZSTD_compressBound(plain.size()), '\0');
  const std::size_t size =
      ZSTD_compress2(context.get(), bytes.data(), bytes.size(), plain.data(), plain.size());
  ISTHMUS_CHECK(ZSTD_isError(size) == 0U, "zstd: {}", ZSTD_getErrorName(size));
  bytes.resize(size);
  return bytes;
}

Defect Decompress(std::string_view bytes, proto::Block& block) {
  // The size a frame claims is not believed: the output grows as it comes.
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  std::string plain;
  ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
  std::size_t remaining = 1;
  while (remaining != 0) {
    const std::size_t before = plain.size();
    if (before >= kMaxBlockBytes) {
      return fmt::format("holds more than {} bytes in one block", kMaxBlockBytes);
    }
    plain.resize(before + std::max(before, ZSTD_DStreamOutSize()));
    ZSTD_outBuffer output{plain.data(), plain.size(), before};
    remaining = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(remaining) != 0U) {
      return fmt::format("is damaged ({})", ZSTD_getErrorName(remaining));
    }
    const bool full = output.pos == plain.size();
    plain.resize(output.pos);
    if (remaining != 0 && input.pos == input.size && !full) return "is damaged (it ends early)";
  }
  if (input.pos != input.size) return "is damaged (it goes on after its end)";
  if (!block.ParseFromArray(plain.data(), static_cast<int>(plain.size()))) {
    return "does not hold what the schema says";
  }
  return std::nullopt;
}

void Encode(std::span<const Event> events, std::size_t num_classes, proto::Events& columns) {
  std::vector<std::uint32_t> last_op(num_classes, 0);
  std::uint32_t last_class = 0;
  std::int64_t last_start = 0;
  for (const Event& event : events) {
    ISTHMUS_CHECK(event.rank_class < num_classes);
    columns.add_class_deltas(Difference(event.rank_class, last_class));
    columns.add_op_deltas(Difference(event.op, last_op[event.rank_class]));
    columns.add_inners(event.inner);
    columns.add_start_deltas(Difference(event.start_ps, last_start));
    columns.add_waits(Difference(event.start_ps, event.issue_ps));
    columns.add_durations(Difference(event.end_ps, event.start_ps));
    last_class = event.rank_class;
    last_op[event.rank_class] = event.op;
    last_start = event.start_ps;
  }
}

void Encode(std::span<const MemoryCounter> counters, std::size_t num_classes,
            proto::MemoryCounters& columns) {
  std::vector<std::int64_t> last_bytes(num_classes, 0);
  MemoryCounter last;
  for (const MemoryCounter& counter : counters) {
    ISTHMUS_CHECK(counter.rank_class < num_classes);
    columns.add_class_deltas(Difference(counter.rank_class, last.rank_class));
    columns.add_time_deltas(Difference(counter.time_ps, last.time_ps));
    columns.add_byte_deltas(Difference(counter.bytes, last_bytes[counter.rank_class]));
    last_bytes[counter.rank_class] = counter.bytes;
    last = counter;
  }
}

Defect Decode(const proto::Events& columns, std::size_t num_classes, std::vector<Event>& events) {
  const int size = columns.class_deltas_size();
  if (columns.op_deltas_size() != size || columns.inners_size() != size ||
      columns.start_deltas_size() != size || columns.waits_size() != size ||
      columns.durations_size() != size) {
    return "has event columns of different lengths";
  }
  std::vector<std::uint32_t> last_op(num_classes, 0);
  Event event;
  events.reserve(events.size() + static_cast<std::size_t>(size));
  for (int row = 0; row < size; ++row) {
    event.rank_class = Sum(event.rank_class, columns.class_deltas(row));
    if (event.rank_class >= num_classes) return ClassDefect(event.rank_class, num_classes);
    event.op = Sum(last_op[event.rank_class], columns.op_deltas(row));
    event.inner = columns.inners(row);
    event.start_ps = Sum(event.start_ps, columns.start_deltas(row));
    event.issue_ps = Difference(event.start_ps, columns.waits(row));
    event.end_ps = Sum(event.start_ps, columns.durations(row));
    last_op[event.rank_class] = event.op;
    events.push_back(event);
  }
  return std::nullopt;
}

Defect Decode(const proto::MemoryCounters& columns, std::size_t num_classes,
              std::vector<MemoryCounter>& counters) {
  const int size = columns.class_deltas_size();
  if (columns.time_deltas_size() != size || columns.byte_deltas_size() != size) {
    return "has memory columns of different lengths";
  }
  std::vector<std::int64_t> last_bytes(num_classes, 0);
  MemoryCounter counter;
  counters.reserve(counters.size() + static_cast<std::size_t>(size));
  for (int row = 0; row < size; ++row) {
    counter.rank_class = Sum(counter.rank_class, columns.class_deltas(row));
    if (counter.rank_class >= num_classes) return ClassDefect(counter.rank_class, num_classes);
    counter.time_ps = Sum(counter.time_ps, columns.time_deltas(row));
    counter.bytes = Sum(last_bytes[counter.rank_class], columns.byte_deltas(row));
    last_bytes[counter.rank_class] = counter.bytes;
    counters.push_back(counter);
  }
  return std::nullopt;
}

}  // namespace isthmus::traces::internal
