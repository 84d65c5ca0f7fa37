#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace isthmus::reports {

enum class Align : unsigned char { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

/// Rows of text cells under titled columns, written aligned for terminals, as CSV or as Markdown.
///
/// Invariant: every row has as many cells as there are columns. Widths are counted in characters
/// (UTF-8 code points; terminal colour sequences count as nothing), so cells may hold both.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// Needs as many cells as there are columns. (Fewer are a mistake, not empty cells.)
  void AddRow(std::vector<std::string> cells);
  /// A line between the rows before and after it; text only.
  void AddRule();

  bool empty() const { return rows_.empty(); }
  std::size_t num_rows() const { return rows_.size(); }

  struct TextStyle {
    std::size_t indent = 2;
    std::size_t gap = 2;  // spaces between columns
    bool titles = true;   // the titles and the line under them
  };
  /// Aligned columns; lines carry no trailing spaces and end with a line break.
  std::string RenderText() const;
  std::string RenderText(const TextStyle& style) const;
  /// RFC 4180 with LF line ends: cells with a comma, quote or line break are quoted.
  std::string RenderCsv() const;
  /// A GitHub table; bars and line breaks in cells are escaped.
  std::string RenderMarkdown() const;

 private:
  std::vector<std::size_t> Widths(bool titles) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> rules_;  // before these rows, ascending
};

/// Characters that a terminal shows of a UTF-8 text without wide characters; colour sequences
/// ("\x1b[…m") take none.
std::size_t DisplayWidth(const std::string& text);

/// The first characters of a text without colour sequences, "…" at the end if some were dropped.
std::string Shorten(const std::string& text, std::size_t width);

}  // namespace isthmus::reports
