#include "traces/internal/store_writer.h"

#include <algorithm>

#include "base/check.h"
#include "traces/internal/tables.h"
#include "traces/internal/trace_index.h"

namespace isthmus::traces::internal {
namespace {

void CheckNone(const Defect& defect) {
  ISTHMUS_CHECK(!defect.has_value(), "the trace {}", *defect);
}

}  // namespace

void StoreWriter::WriteBlock(const proto::Block& block) {
  const std::string bytes = Compress(block);
  std::string length;
  for (unsigned shift = 0; shift < 32U; shift += 8U) {
    length.push_back(static_cast<char>((bytes.size() >> shift) & 0xFFU));
  }
  file_.Write(length);
  file_.Write(bytes);
}

void StoreWriter::OnHeader(const Header& header) {
  header_ = header;
  CheckNone(TraceIndex(header_).DefectOfHeader());
  file_.Write(kFileStart);
  proto::Block block;
  Encode(header_, *block.mutable_header());
  WriteBlock(block);
  for (const RoleRecord& role : header_.roles) {
    Encode(role, *block.mutable_role());
    WriteBlock(block);
    for (std::size_t first = 0; first < role.ops.size(); first += kTableOps) {
      const std::size_t count = std::min(kTableOps, role.ops.size() - first);
      Encode(std::span(role.ops).subspan(first, count), *block.mutable_ops());
      WriteBlock(block);
      block.Clear();
    }
    block.Clear();
  }
}

void StoreWriter::OnEvents(std::span<const Event> events) {
  const TraceIndex index(header_);
  for (const Event& event : events) {
    CheckNone(index.DefectOf(event));
    events_.push_back(event);
    if (events_.size() == kBlockEntries) FlushEvents();
  }
}

void StoreWriter::OnMemory(std::span<const MemoryCounter> counters) {
  const TraceIndex index(header_);
  for (const MemoryCounter& counter : counters) {
    CheckNone(index.DefectOf(counter));
    counters_.push_back(counter);
    if (counters_.size() == kBlockEntries) FlushCounters();
  }
}

void StoreWriter::OnTrailer(const Trailer& trailer) {
  CheckNone(TraceIndex(header_).DefectOf(trailer));
  FlushEvents();
  FlushCounters();
  proto::Block block;
  Encode(trailer, *block.mutable_trailer());
  WriteBlock(block);
  file_.Commit();
}

void StoreWriter::FlushEvents() {
  if (events_.empty()) return;
  proto::Block block;
  Encode(events_, header_.classes.size(), *block.mutable_events());
  WriteBlock(block);
  events_.clear();
}

void StoreWriter::FlushCounters() {
  if (counters_.empty()) return;
  proto::Block block;
  Encode(counters_, header_.classes.size(), *block.mutable_counters());
  WriteBlock(block);
  counters_.clear();
}

}  // namespace isthmus::traces::internal
