#include "studies/runs_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_io.h"

namespace isthmus::studies {
namespace {

[[noreturn]] void FailAt(const std::string& label, CsvRecord::Place place, std::string message,
                         std::string hint = {}) {
  throw base::Error(base::FormatDiagnostic({.file = label,
                                            .line = place.line,
                                            .column = place.column,
                                            .message = std::move(message),
                                            .hint = std::move(hint)}));
}

[[noreturn]] void Fail(const std::string& label, int line, std::string message,
                       std::string hint = {}) {
  FailAt(label, {.line = line, .column = 0}, std::move(message), std::move(hint));
}

// One pass over the text, cell by cell.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& label) : text_(text), label_(label) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = line_begin_ = 3;
  }

  std::vector<CsvRecord> Read() {
    std::vector<CsvRecord> records;
    while (at_ < text_.size()) {
      CsvRecord record = ReadRecord();
      const bool is_blank = record.cells.size() == 1 && record.cells.front().empty();
      if (!is_blank) records.push_back(std::move(record));
    }
    return records;
  }

 private:
  CsvRecord ReadRecord() {
    CsvRecord record{.line = line_, .cells = {}, .places = {}};
    while (true) {
      record.places.push_back({line_, static_cast<int>(at_ - line_begin_) + 1});
      const bool is_quoted = at_ < text_.size() && text_[at_] == '"';
      record.cells.push_back(is_quoted ? ReadQuoted() : ReadPlain());
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      EndLine();
      return record;
    }
  }

  std::string ReadPlain() {
    const std::size_t end = std::min(text_.find_first_of(",\n\r\"", at_), text_.size());
    if (end < text_.size() && text_[end] == '"') {
      Fail(label_, line_, "a quote stands inside a cell without quotes",
           "put the whole cell in quotes and double the quotes inside");
    }
    const std::string_view cell = text_.substr(at_, end - at_);
    if (cell.find('\0') != std::string_view::npos) Fail(label_, line_, "the file is not text");
    at_ = end;
    return std::string(cell);
  }

  std::string ReadQuoted() {
    const int first_line = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      const char character = text_[at_];
      if (character == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      if (character == '\n') BeginLine(at_ + 1);
      cell += character;
    }
    if (at_ >= text_.size()) {
      Fail(label_, first_line, "a quoted cell starts here and never ends", "is the file cut off?");
    }
    ++at_;
    if (at_ < text_.size() &&
        std::string_view(",\n\r").find(text_[at_]) == std::string_view::npos) {
      Fail(label_, line_, "text follows the closing quote of a cell", "double the quotes inside");
    }
    return cell;
  }

  void EndLine() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    BeginLine(at_);
  }

  void BeginLine(std::size_t at) {
    ++line_;
    line_begin_ = at;
  }

  std::string_view text_;
  const std::string& label_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
};

struct KindColumns {
  RunsKind kind;
  std::string_view mark;  // the column that no other layout has
  std::vector<std::string_view> needed;
};

const std::array<KindColumns, 3>& Layouts() {
  static const std::array<KindColumns, 3> layouts = {{
      {RunsKind::kPaperRuns,
       "encoder_size",
       {"id", "encoder_size", "llm_size", "context_length", "vision_pct", "gpus", "mode", "enc_tp",
        "enc_cp", "enc_dp", "llm_tp", "llm_cp", "llm_pp", "llm_dp", "gbs", "step_ms", "fb_ms",
        "memory_gb", "gain_tokens_pct"}},
      {RunsKind::kMemoryPoints,
       "component",
       {"row_id", "gpu", "n_gpus", "framework", "model", "layers", "hidden", "ffn_hidden", "heads",
        "vocab", "seq_len", "TP", "PP", "MBS", "precision", "component", "value_gib", "kind",
        "mem_metric"}},
      {RunsKind::kTrainingRuns,
       "step_time_s",
       {"row_id", "gpu", "n_gpus", "layers", "hidden", "ffn_hidden", "heads", "vocab", "seq_len",
        "GBS", "step_time_s"}},
  }};
  return layouts;
}

}  // namespace

std::optional<std::size_t> CsvTable::Find(std::string_view column) const {
  const auto found = std::ranges::find(columns, column);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

CsvTable ParseCsv(std::string_view text, const std::string& label) {
  CsvTable table{.label = label, .columns = {}, .rows = CsvReader(text, label).Read()};
  if (table.rows.empty()) Fail(label, 1, "the file is empty: a header of column names is missing");
  table.columns = std::move(table.rows.front().cells);
  table.rows.erase(table.rows.begin());
  std::set<std::string_view> seen;
  for (const std::string& column : table.columns) {
    if (!seen.insert(column).second)
      Fail(label, 1, fmt::format("column '{}' is there twice", column));
  }
  for (const CsvRecord& row : table.rows) {
    if (row.cells.size() == table.columns.size()) continue;
    Fail(label, row.line,
         fmt::format("{} cells, but the header names {} columns", row.cells.size(),
                     table.columns.size()),
         row.cells.size() < table.columns.size() ? "is the file cut off?" : "");
  }
  return table;
}

CsvTable ReadCsv(const std::filesystem::path& path) {
  return ParseCsv(base::ReadFile(path), path.string());
}

const char* ToText(RunsKind kind) {
  switch (kind) {
    case RunsKind::kTrainingRuns:
      return "training_runs";
    case RunsKind::kPaperRuns:
      return "mimo_paper_runs";
    case RunsKind::kMemoryPoints:
      return "memory_points";
  }
  return "";
}

RunsKind DetectKind(const CsvTable& table) {
  std::vector<std::string_view> marks;
  for (const KindColumns& layout : Layouts()) {
    marks.push_back(layout.mark);
    if (!table.Find(layout.mark)) continue;
    std::vector<std::string_view> missing;
    for (const std::string_view column : layout.needed) {
      if (!table.Find(column)) missing.push_back(column);
    }
    if (missing.empty()) return layout.kind;
    Fail(table.label, 1,
         fmt::format("the header looks like {}, but lacks {}", ToText(layout.kind),
                     fmt::join(missing, ", ")));
  }
  Fail(table.label, 1, "the header is of no known layout of runs",
       fmt::format("one of these columns tells it: {}", fmt::join(marks, ", ")));
}

const std::string& RunsRow::text(std::string_view column) const {
  static const std::string empty;
  const auto index = table_->Find(column);
  return index ? table_->rows[row_].cells[*index] : empty;
}

void RunsRow::Refuse(std::string_view column, std::string_view wanted) const {
  const auto index = table_->Find(column);
  const CsvRecord::Place place =
      index ? table_->rows[row_].places[*index] : CsvRecord::Place{line(), 0};
  FailAt(table_->label, place,
         fmt::format("column {}: '{}' is not {}", column, text(column), wanted));
}

std::optional<double> RunsRow::number(std::string_view column) const {
  std::string_view cell = text(column);
  if (cell.empty()) return std::nullopt;
  if (cell.front() == '+') cell.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failure != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value)) {
    Refuse(column, "a number");
  }
  return value;
}

std::optional<std::int64_t> RunsRow::integer(std::string_view column) const {
  const auto value = number(column);
  if (!value) return std::nullopt;
  constexpr double kLargest = 1e15;  // exact in a double
  if (*value != std::floor(*value) || *value < 0 || *value > kLargest) {
    Refuse(column, "a whole number");
  }
  return static_cast<std::int64_t>(*value);
}

}  // namespace isthmus::studies
