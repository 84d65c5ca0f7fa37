#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// CSV files of training runs.
namespace isthmus::studies {

struct CsvRecord {
  struct Place {
    int line = 0;    ///< from 1
    int column = 0;  ///< characters (bytes) from 1
  };
  int line = 0;  ///< where the record starts, from 1
  std::vector<std::string> cells;
  std::vector<Place> places;  ///< of the cells
};

/// A file with a header: RFC 4180, LF or CRLF, UTF-8 with or without byte order mark.
///
/// Invariant: column names are distinct, and every row has as many cells as there are columns.
struct CsvTable {
  std::string label;  ///< the file's name in messages
  std::vector<std::string> columns;
  std::vector<CsvRecord> rows;

  std::optional<std::size_t> Find(std::string_view column) const;
};

/// Throws base::Error "label:line: error: …" for a quote that never ends or is followed by text, a
/// record with too many or too few cells, bytes that are no text, a column twice, no header.
CsvTable ParseCsv(std::string_view text, const std::string& label);
CsvTable ReadCsv(const std::filesystem::path& path);

/// The column layouts that are understood.
enum class RunsKind : std::uint8_t { kTrainingRuns, kPaperRuns, kMemoryPoints };
const char* ToText(RunsKind kind);  // "training_runs", "mimo_paper_runs", "memory_points"

/// Which layout a header is. Throws base::Error that names the missing columns. What a layout needs
/// is little (docs/validate.md): a column that is not there counts as empty in every row.
RunsKind DetectKind(const CsvTable& table);

/// One row by column names. Lifetime: the table must outlive it.
class RunsRow {
 public:
  RunsRow(const CsvTable& table, std::size_t row) : table_(&table), row_(row) {}

  /// The cell; empty when the table has no such column.
  const std::string& text(std::string_view column) const;
  /// Nothing for an empty cell. Throws base::Error "label:line:column: error: …" for other text.
  std::optional<double> number(std::string_view column) const;
  std::optional<std::int64_t> integer(std::string_view column) const;

  const CsvTable& table() const { return *table_; }
  int line() const { return table_->rows[row_].line; }
  /// Throws base::Error at the cell's place.
  [[noreturn]] void Refuse(std::string_view column, std::string_view wanted) const;

 private:
  const CsvTable* table_;
  std::size_t row_;
};

}  // namespace isthmus::studies
