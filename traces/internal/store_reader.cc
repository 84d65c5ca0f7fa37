#include "traces/internal/store_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "traces/internal/tables.h"
#include "traces/internal/trace_index.h"

namespace isthmus::traces::internal {
namespace {

// A length is not believed before the bytes are there.
constexpr std::size_t kReadStep = std::size_t{1} << 20U;

std::string Printable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text +=
        value >= 0x20U && value < 0x7FU ? std::string(1, byte) : fmt::format("\\x{:02x}", value);
  }
  return text;
}

}  // namespace

StoreReader::StoreReader(std::filesystem::path path, TraceSink& sink)
    : path_(std::move(path)), sink_(sink) {}

void StoreReader::Fail(const std::string& what) const {
  throw base::Error(fmt::format("{}: byte {}: {}", path_.string(), block_start_, what));
}

std::string StoreReader::ReadBytes(std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    const std::size_t before = bytes.size();
    bytes.resize(std::min(size, before + kReadStep));
    file_.read(bytes.data() + before, static_cast<std::streamsize>(bytes.size() - before));
    const auto got = static_cast<std::size_t>(file_.gcount());
    offset_ += got;
    bytes.resize(before + got);
    if (!file_) break;
  }
  return bytes;
}

void StoreReader::CheckStart() {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    throw base::Error(fmt::format("{}: is a folder, not a trace", path_.string()));
  }
  file_.open(path_, std::ios::binary);
  if (!file_) {
    throw base::Error(fmt::format("{}: cannot be read: {}", path_.string(),
                                  std::generic_category().message(errno)));
  }
  const std::string start = ReadBytes(kFileStart.size());
  if (start == kFileStart) return;
  const std::string_view name = kFileStart.substr(0, kFileStart.size() - 1);
  if (start.size() == kFileStart.size() && start.starts_with(name)) {
    Fail(fmt::format("version {} of the trace format; this program reads version {}",
                     Printable(start.substr(name.size())), kFileStart.back()));
  }
  Fail(fmt::format("not an Isthmus trace: it starts with \"{}\", not with \"{}\"", Printable(start),
                   kFileStart));
}

bool StoreReader::ReadBlock(std::string& bytes) {
  block_start_ = offset_;
  const std::string length = ReadBytes(4);
  if (length.empty()) return false;
  if (length.size() < 4) Fail("the file ends within the length of a block");
  std::size_t size = 0;
  for (std::size_t index = 0; index < 4; ++index) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(length[index])) << (8 * index);
  }
  bytes = ReadBytes(size);
  if (bytes.size() < size) {
    Fail(fmt::format("the file ends {} bytes before the end of this block", size - bytes.size()));
  }
  return true;
}

void StoreReader::Read() {
  CheckStart();
  std::string bytes;
  while (ReadBlock(bytes)) {
    if (trailer_) Fail("the file goes on after its trailer");
    proto::Block block;
    Defect defect = Decompress(bytes, block);
    if (!defect) defect = Take(block);
    if (defect) Fail("the block " + *defect);
  }
  if (!trailer_) Fail("the file ends without a trailer: it was cut off or never completed");
  sink_.OnTrailer(*trailer_);
}

Defect StoreReader::Take(const proto::Block& block) {
  switch (block.content_case()) {
    case proto::Block::kHeader:
    case proto::Block::kRole:
    case proto::Block::kOps:
      return TakeHeaderPart(block);
    case proto::Block::kEvents:
    case proto::Block::kCounters:
    case proto::Block::kTrailer:
      break;
    case proto::Block::CONTENT_NOT_SET:
      return "is of an unknown kind";
  }
  if (!header_given_) {
    if (Defect defect = FinishHeader()) return defect;
  }
  if (block.has_events()) return TakeEvents(block.events());
  if (block.has_counters()) return TakeCounters(block.counters());
  return TakeTrailer(block.trailer());
}

Defect StoreReader::TakeHeaderPart(const proto::Block& block) {
  if (header_given_) return "belongs to the header and comes after events";
  if (block.has_header()) {
    if (has_header_) return "is a second header";
    has_header_ = true;
    roles_left_ = block.header().num_roles();
    return Decode(block.header(), header_);
  }
  if (block.has_role()) {
    if (roles_left_ == 0 || ops_left_ > 0) return "is a role out of place";
    --roles_left_;
    ops_left_ = block.role().num_ops();
    return Decode(block.role(), header_.roles.emplace_back());
  }
  const auto count = static_cast<std::uint64_t>(block.ops().ops_size());
  if (count > ops_left_ || header_.roles.empty()) return "has ops out of place";
  ops_left_ -= count;
  return Decode(block.ops(), header_.roles.back().ops);
}

Defect StoreReader::FinishHeader() {
  if (!has_header_) return "comes before the header";
  if (roles_left_ > 0 || ops_left_ > 0) return "comes before the last roles of the header";
  if (Defect defect = TraceIndex(header_).DefectOfHeader()) {
    return "ends a header that " + *defect;
  }
  header_given_ = true;
  sink_.OnHeader(header_);
  return std::nullopt;
}

Defect StoreReader::TakeEvents(const proto::Events& columns) {
  events_.clear();
  if (Defect defect = Decode(columns, header_.classes.size(), events_)) return defect;
  const TraceIndex index(header_);
  for (const Event& event : events_) {
    if (Defect defect = index.DefectOf(event)) return defect;
  }
  sink_.OnEvents(events_);
  return std::nullopt;
}

Defect StoreReader::TakeCounters(const proto::MemoryCounters& columns) {
  counters_.clear();
  if (Defect defect = Decode(columns, header_.classes.size(), counters_)) return defect;
  sink_.OnMemory(counters_);
  return std::nullopt;
}

Defect StoreReader::TakeTrailer(const proto::Trailer& message) {
  if (Defect defect = Decode(message, trailer_.emplace())) return defect;
  return TraceIndex(header_).DefectOf(*trailer_);
}

}  // namespace isthmus::traces::internal
