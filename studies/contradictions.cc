#include "studies/contradictions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

namespace isthmus::studies {
namespace {

constexpr double kSameWork = 0.05;
constexpr double kOtherTime = 0.10;

void AddDifference(const char* what, const std::string& a, const std::string& b,
                   std::string& text) {
  if (a == b) return;
  text += fmt::format("{}{} {} / {}", text.empty() ? "" : "; ", what, a, b);
}

// What the rows themselves say is different.
std::string DifferencesOf(const RunCase& a, const RunCase& b) {
  std::string text;
  AddDifference("model", a.model, b.model, text);
  AddDifference("release", a.release, b.release, text);
  AddDifference("precision", a.precision, b.precision, text);
  AddDifference("table", a.table, b.table, text);
  if (text.empty()) AddDifference("scenario", a.spec->description, b.spec->description, text);
  return text.empty() ? "nothing that the rows state" : text;
}

std::optional<Contradiction> Compare(const RowResult& a, const RowResult& b) {
  const bool in_order = *a.run.measured_step_time_s <= *b.run.measured_step_time_s;
  const RowResult& fast = in_order ? a : b;
  const RowResult& slow = in_order ? b : a;
  Contradiction pair{.first = fast.run.row_id, .second = slow.run.row_id};
  pair.work_ratio = slow.work_flops / fast.work_flops;
  pair.measured_ratio = *slow.run.measured_step_time_s / *fast.run.measured_step_time_s;
  pair.predicted_ratio = *slow.predicted_step_time_s / *fast.predicted_step_time_s;
  const bool is_told = std::abs(pair.work_ratio - 1) < kSameWork &&
                       pair.measured_ratio - 1 > kOtherTime &&
                       pair.measured_ratio - pair.predicted_ratio > kOtherTime;
  if (!is_told) return std::nullopt;
  pair.differs = DifferencesOf(fast.run, slow.run);
  return pair;
}

}  // namespace

std::vector<Contradiction> FindContradictions(const std::vector<RowResult>& rows) {
  std::map<std::string, std::vector<const RowResult*>> by_layout;
  for (const RowResult& row : rows) {
    const bool is_comparable = row.error && row.work_flops > 0 && !row.run.layout.empty();
    if (is_comparable) by_layout[row.run.layout].push_back(&row);
  }
  std::vector<Contradiction> all;
  for (const auto& [layout, members] : by_layout) {
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = a + 1; b < members.size(); ++b) {
        if (const auto pair = Compare(*members[a], *members[b])) all.push_back(*pair);
      }
    }
  }
  std::ranges::stable_sort(all, [](const Contradiction& a, const Contradiction& b) {
    return a.measured_ratio / a.predicted_ratio > b.measured_ratio / b.predicted_ratio;
  });
  std::set<std::string> seen;
  std::erase_if(all, [&](const Contradiction& pair) {
    const bool is_new = !seen.contains(pair.first) || !seen.contains(pair.second);
    seen.insert({pair.first, pair.second});
    return !is_new;
  });
  return all;
}

}  // namespace isthmus::studies
