#include "traces/internal/csv_writer.h"

#include <algorithm>
#include <string_view>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/check.h"
#include "traces/internal/trace_index.h"

namespace isthmus::traces::internal {
namespace {

constexpr std::string_view kColumns =
    "rank,num_ranks,role,lane,op,inner,name,kind,action,category,module,chunk,microbatch,step,"
    "communicator,peer_rank,bytes,model_flops,hardware_flops,issue_ps,start_ps,end_ps\n";

bool NeedsQuotes(std::string_view text) {
  return std::ranges::any_of(text, [](char character) {
    return character == ',' || character == '"' || character == '\r' || character == '\n';
  });
}

std::string Cell(std::string_view text) {
  if (!NeedsQuotes(text)) return std::string(text);
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + '"';
}

// The columns that tell the op itself, its transfers and its pieces apart.
struct Detail {
  std::string name;
  std::string_view kind;
  std::string_view action;
  Category category = Category::kCompute;
  std::string peer_rank;
  std::string bytes;
  std::string model_flops;
  std::string hardware_flops;
};

Detail DetailOf(const Header& header, const TraceIndex& index, const Event& event) {
  const OpRecord& op = index.OpOf(event);
  Detail detail;
  detail.name = op.name;
  detail.kind = op.kind;
  detail.action = op.action;
  detail.category = op.category;
  if (event.inner == 0) {
    detail.bytes = std::to_string(op.bytes);
    detail.model_flops = fmt::format("{}", op.model_flops);
    detail.hardware_flops = fmt::format("{}", op.hardware_flops);
  } else if (HasTransfers(op)) {
    const TransferRecord& transfer = op.transfers[event.inner - 1];
    const std::uint32_t peer = index.ClassOf(event).peers[transfer.peer];
    detail.kind = "transfer";
    detail.action = transfer.sends ? "send" : "receive";
    detail.peer_rank = std::to_string(header.classes[peer].representative);
    detail.bytes = std::to_string(transfer.bytes);
  } else {
    detail.kind = "piece";
    const PieceRecord piece = index.PieceOf(event);
    detail.name = piece.name;
    detail.category = piece.category;
  }
  return detail;
}

}  // namespace

void CsvWriter::OnHeader(const Header& header) {
  header_ = header;
  const Defect defect = TraceIndex(header_).DefectOfHeader();
  ISTHMUS_CHECK(!defect.has_value(), "the trace {}", *defect);
  file_.Write(kColumns);
}

std::string CsvWriter::LineOf(const Event& event) const {
  const TraceIndex index(header_);
  const RankClass& rank_class = index.ClassOf(event);
  const RoleRecord& role = index.RoleOf(event);
  const OpRecord& op = index.OpOf(event);
  const Detail detail = DetailOf(header_, index, event);
  return fmt::format(
      FMT_COMPILE("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n"),
      rank_class.representative, rank_class.count, Cell(role.name), Cell(role.lanes[op.lane].name),
      event.op, event.inner, Cell(detail.name), Cell(detail.kind), Cell(detail.action),
      ToText(detail.category), Cell(header_.modules[op.module].name), op.chunk,
      op.microbatch < 0 ? std::string() : std::to_string(op.microbatch), op.step,
      op.group == 0 ? std::string() : Cell(role.groups[op.group - 1]), detail.peer_rank,
      detail.bytes, detail.model_flops, detail.hardware_flops, event.issue_ps, event.start_ps,
      event.end_ps);
}

void CsvWriter::OnEvents(std::span<const Event> events) {
  for (const Event& event : events) {
    const Defect defect = TraceIndex(header_).DefectOf(event);
    ISTHMUS_CHECK(!defect.has_value(), "the trace {}", *defect);
    file_.Write(LineOf(event));
  }
}

void CsvWriter::OnMemory(std::span<const MemoryCounter> /*counters*/) {
  // Not part of the table.
}

void CsvWriter::OnTrailer(const Trailer& /*trailer*/) { file_.Commit(); }

}  // namespace isthmus::traces::internal
