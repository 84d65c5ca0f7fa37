#include "reports/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace isthmus::reports {
namespace {

constexpr char kEscape = '\x1b';

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }

std::string Repeat(const char* text, std::size_t count) {
  std::string repeated;
  for (std::size_t done = 0; done < count; ++done) repeated += text;
  return repeated;
}

void AppendAligned(std::string& line, const std::string& cell, std::size_t width, Align align) {
  const std::size_t shown = DisplayWidth(cell);
  const std::string padding(width > shown ? width - shown : 0, ' ');
  line += align == Align::kRight ? padding + cell : cell + padding;
}

std::string QuoteCsv(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char letter : cell) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

std::string EscapeMarkdown(const std::string& cell) {
  std::string escaped;
  for (const char letter : cell) {
    if (letter == '|') escaped += '\\';
    if (letter == '\n') {
      escaped += "<br>";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

}  // namespace

std::size_t DisplayWidth(const std::string& text) {
  std::size_t width = 0;
  bool in_sequence = false;
  for (const char byte : text) {
    if (byte == kEscape) in_sequence = true;
    if (!in_sequence && BeginsCharacter(byte)) ++width;
    if (in_sequence && byte == 'm') in_sequence = false;
  }
  return width;
}

std::string Shorten(const std::string& text, std::size_t width) {
  if (width == 0) return {};
  if (DisplayWidth(text) <= width) return text;
  std::size_t kept = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    if (BeginsCharacter(text[end]) && ++kept == width) break;
    ++end;
  }
  return text.substr(0, end) + "…";
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  ISTHMUS_CHECK(cells.size() == columns_.size(), "a row of {} cells in a table of {} columns",
                cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::AddRule() { rules_.push_back(rows_.size()); }

std::vector<std::size_t> Table::Widths(bool titles) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(titles ? DisplayWidth(column.title) : 0);
  for (const auto& row : rows_) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], DisplayWidth(row[column]));
    }
  }
  return widths;
}

std::string Table::RenderText() const { return RenderText(TextStyle{}); }

std::string Table::RenderText(const TextStyle& style) const {
  const std::vector<std::size_t> widths = Widths(style.titles);
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line(style.indent, ' ');
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      if (column > 0) line.append(style.gap, ' ');
      AppendAligned(line, cell_of(column), widths[column], columns_[column].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  const auto add_rule = [&] {
    add_line([&](std::size_t column) { return Repeat("─", widths[column]); });
  };
  if (style.titles) {
    add_line([&](std::size_t column) { return columns_[column].title; });
    add_rule();
  }
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    if (index > 0 && std::binary_search(rules_.begin(), rules_.end(), index)) add_rule();
    add_line([&](std::size_t column) { return rows_[index][column]; });
  }
  return text;
}

std::string Table::RenderCsv() const {
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      if (column > 0) text += ',';
      text += QuoteCsv(cell_of(column));
    }
    text += '\n';
  };
  add_line([&](std::size_t column) { return columns_[column].title; });
  for (const auto& row : rows_) add_line([&](std::size_t column) { return row[column]; });
  return text;
}

std::string Table::RenderMarkdown() const {
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    text += '|';
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      text += ' ' + EscapeMarkdown(cell_of(column)) + " |";
    }
    text += '\n';
  };
  add_line([&](std::size_t column) { return columns_[column].title; });
  add_line([&](std::size_t column) {
    return std::string(columns_[column].align == Align::kRight ? "---:" : "---");
  });
  for (const auto& row : rows_) add_line([&](std::size_t column) { return row[column]; });
  return text;
}

}  // namespace isthmus::reports
