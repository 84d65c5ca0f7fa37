#include "plan/program/internal/words.h"

#include <algorithm>

#include <fmt/format.h>

namespace isthmus::plan::internal {
namespace {

struct Run {
  std::size_t first = 0;
  std::size_t count = 0;
  int step = 1;
};

/// Cuts ascending ranks into runs an equal distance apart; two ranks apart are two runs.
std::vector<Run> RunsOf(const std::vector<base::Rank>& ranks) {
  std::vector<Run> runs;
  for (std::size_t at = 0; at < ranks.size();) {
    Run run{.first = at, .count = 1};
    if (at + 1 < ranks.size()) run.step = ranks[at + 1].value() - ranks[at].value();
    while (at + run.count < ranks.size() &&
           ranks[at + run.count].value() - ranks[at + run.count - 1].value() == run.step) {
      ++run.count;
    }
    if (run.step != 1 && run.count < 5) run = {.first = at, .count = 1};
    runs.push_back(run);
    at += run.count;
  }
  return runs;
}

/// Runs of equal length an equal distance apart: every data-parallel copy has one.
bool IsRegular(const std::vector<base::Rank>& ranks, const std::vector<Run>& runs) {
  if (runs.size() < 4) return false;
  const int distance = ranks[runs[1].first].value() - ranks[runs[0].first].value();
  for (std::size_t at = 0; at < runs.size(); ++at) {
    const bool follows =
        at == 0 || ranks[runs[at].first].value() - ranks[runs[at - 1].first].value() == distance;
    if (runs[at].step != 1 || runs[at].count != runs[0].count || !follows) return false;
  }
  return true;
}

std::string RunText(const std::vector<base::Rank>& ranks, const Run& run) {
  const int first = ranks[run.first].value();
  const int last = ranks[run.first + run.count - 1].value();
  if (run.count == 1) return fmt::format("{}", first);
  if (run.step == 1) return fmt::format("{}-{}", first, last);
  return fmt::format("{}, {} ... {}", first, first + run.step, last);
}

}  // namespace

std::string RankList(const std::vector<base::Rank>& ranks, std::size_t most) {
  const std::vector<Run> runs = RunsOf(ranks);
  if (IsRegular(ranks, runs)) {
    return fmt::format("{}, {} ... {}", RunText(ranks, runs[0]), RunText(ranks, runs[1]),
                       RunText(ranks, runs.back()));
  }
  std::string text;
  std::size_t shown = 0;
  for (std::size_t at = 0; at < runs.size() && at < most; ++at) {
    text += (at == 0 ? "" : ", ") + RunText(ranks, runs[at]);
    shown += runs[at].count;
  }
  if (shown < ranks.size()) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

std::string MemberList(const std::vector<base::Rank>& members, std::size_t most) {
  if (std::is_sorted(members.begin(), members.end())) return RankList(members, most);
  std::string text;
  for (std::size_t at = 0; at < members.size() && at < most; ++at) {
    text += fmt::format("{}{}", at == 0 ? "" : ", ", members[at].value());
  }
  if (members.size() > most) text += fmt::format(" and {} more", members.size() - most);
  return text;
}

std::string ShortCount(std::int64_t count) {
  constexpr const char* kPrefixes[] = {"", " k", " M", " B", " T"};
  auto value = static_cast<double>(count);
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  if (prefix == 0) return fmt::format("{}", count);
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, kPrefixes[prefix]);
}

std::string EdgeName(const Program& program, std::size_t edge) {
  const auto name = [&](int module) -> const std::string& {
    return program.modules[static_cast<std::size_t>(module)].module.name;
  };
  return fmt::format("{}->{}", name(program.edges[edge].from), name(program.edges[edge].to));
}

std::string Columns(const std::vector<std::vector<std::string>>& rows, const std::string& indent,
                    const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const bool at_right = std::find(right.begin(), right.end(), column) != right.end();
      line += at_right ? fmt::format("{:>{}}", row[column], widths[column])
                       : fmt::format("{:<{}}", row[column], widths[column]);
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace isthmus::plan::internal
