#include "traces/measured_row.h"

#include <charconv>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::traces {
namespace {

constexpr std::string_view kHeader =
    "table,point,held_out,value,core_s,busy_ranks,spread,num_samples";

std::vector<std::string_view> SplitAt(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(mark);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename Number>
bool Parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseRow(std::string_view line, MeasuredRow& row) {
  const std::vector<std::string_view> cells = SplitAt(line, ',');
  if (cells.size() != 8) return false;
  row.table = cells[0];
  row.point = cells[1];
  row.held_out = cells[2] == "1";
  return !row.table.empty() && (row.held_out || cells[2] == "0") && Parse(cells[3], row.value) &&
         Parse(cells[4], row.core_s) && Parse(cells[5], row.busy_ranks) &&
         Parse(cells[6], row.spread) && Parse(cells[7], row.num_samples);
}

}  // namespace

std::string ToCsv(const std::vector<MeasuredRow>& rows) {
  std::string text = fmt::format("{}\n", kHeader);
  for (const MeasuredRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", row.table, row.point, row.held_out ? 1 : 0,
                        row.value, row.core_s, row.busy_ranks, row.spread, row.num_samples);
  }
  return text;
}

std::vector<MeasuredRow> ParseMeasuredRows(std::string_view text, const std::string& label) {
  std::vector<MeasuredRow> rows;
  std::size_t number = 0;
  for (const std::string_view line : SplitAt(text, '\n')) {
    ++number;
    if (line.empty() || line == kHeader) continue;
    if (!ParseRow(line, rows.emplace_back()))
      throw base::Error(fmt::format("{}:{}: error: not a row of measurements", label, number));
  }
  return rows;
}

}  // namespace isthmus::traces
