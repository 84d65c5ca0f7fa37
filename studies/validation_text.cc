#include "studies/validation_text.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file_io.h"

namespace isthmus::studies {
namespace {

using reports::Align;

constexpr std::size_t kLargestErrors = 5;
constexpr std::size_t kGroupsShown = 40;

std::string Number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "";
}

std::string Percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.1f}", std::abs(*fraction) * 100) : "";
}

std::string SignedPercent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:+.1f}", *fraction * 100) : "";
}

std::vector<const RowResult*> LargestErrors(const Validation& validation) {
  std::vector<const RowResult*> rows;
  for (const RowResult& row : validation.rows) {
    if (row.error) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, [](const RowResult* a, const RowResult* b) {
    return std::abs(*a->error) > std::abs(*b->error);
  });
  rows.resize(std::min(rows.size(), kLargestErrors));
  return rows;
}

void AddGroup(reports::Table& table, const RowGroup& group) {
  table.AddRow({group.by, reports::Shorten(group.name, 40), fmt::format("{}", group.step_time.n),
                Percent(group.step_time.median_abs_error), Percent(group.step_time.p90_abs_error),
                SignedPercent(group.step_time.mean_signed_error), fmt::format("{}", group.memory.n),
                Percent(group.memory.median_abs_error),
                SignedPercent(group.memory.mean_signed_error),
                fmt::format("{}", group.num_skipped)});
}

std::string AssumptionsText(const Validation& validation) {
  std::string text = "# Assumptions by row\n\nWhat a row leaves open and how it was filled.\n";
  for (const RowResult& row : validation.rows) {
    if (!row.is_predicted) continue;
    text += fmt::format("\n## {}: {}\n\n", row.run.row_id, row.run.model);
    for (const std::string& assumption : row.assumptions) text += "- " + assumption + "\n";
  }
  return text;
}

void WriteTable(const reports::Table& table, const std::string& title,
                const std::filesystem::path& stem) {
  if (table.empty()) return;
  base::WriteFile(stem.string() + ".md", "# " + title + "\n\n" + table.RenderMarkdown());
  base::WriteFile(stem.string() + ".csv", table.RenderCsv());
}

// A row's id as the name of a file: ids come from files of others.
std::string FileName(const std::string& id) {
  std::string name = id;
  for (char& character : name) {
    const bool is_plain = (character >= '0' && character <= '9') ||
                          (character >= 'A' && character <= 'Z') ||
                          (character >= 'a' && character <= 'z') || character == '.' ||
                          character == '-' || character == '_';
    if (!is_plain) character = '_';
  }
  return name.starts_with('.') ? "_" + name : name;
}

}  // namespace

reports::Table RowsTable(const Validation& validation) {
  reports::Table table({{"row"},
                        {"table"},
                        {"gpu"},
                        {"model"},
                        {"measured s", Align::kRight},
                        {"predicted s", Align::kRight},
                        {"error %", Align::kRight},
                        {"measured GiB", Align::kRight},
                        {"predicted GiB", Align::kRight},
                        {"memory error %", Align::kRight},
                        {"verdict"},
                        {"why skipped"}});
  for (const RowResult& row : validation.rows) {
    table.AddRow({row.run.row_id, row.run.table, row.run.gpu, row.run.model,
                  Number(row.run.measured_step_time_s, 3), Number(row.predicted_step_time_s, 3),
                  SignedPercent(row.error), Number(row.run.measured_memory_gib, 1),
                  Number(row.predicted_memory_gib, 1), SignedPercent(row.memory_error), row.verdict,
                  row.is_predicted ? "" : row.run.why});
  }
  return table;
}

reports::Table GroupsTable(const Validation& validation) {
  reports::Table table({{"by"},
                        {"group"},
                        {"rows", Align::kRight},
                        {"median |error| %", Align::kRight},
                        {"p90 %", Align::kRight},
                        {"bias %", Align::kRight},
                        {"memory rows", Align::kRight},
                        {"median |error| %", Align::kRight},
                        {"bias %", Align::kRight},
                        {"skipped", Align::kRight}});
  AddGroup(table, validation.summary);
  for (const RowGroup& group : validation.groups) AddGroup(table, group);
  return table;
}

reports::Table GainsTable(const Validation& validation) {
  reports::Table table({{"table"},
                        {"workload"},
                        {"mode"},
                        {"measured %", Align::kRight},
                        {"predicted %", Align::kRight},
                        {"difference, points", Align::kRight}});
  for (const Gain& gain : validation.gains) {
    table.AddRow({gain.table, gain.workload, gain.mode, fmt::format("{:+.1f}", gain.measured_pct),
                  fmt::format("{:+.1f}", gain.predicted_pct),
                  fmt::format("{:+.1f}", gain.predicted_pct - gain.measured_pct)});
  }
  return table;
}

reports::Table GainSummaryTable(const Validation& validation) {
  reports::Table table({{"table"},
                        {"pairs", Align::kRight},
                        {"signs right", Align::kRight},
                        {"with +-3 points", Align::kRight},
                        {"median |error|, points", Align::kRight},
                        {"bias", Align::kRight},
                        {"constant per table", Align::kRight},
                        {"correlation", Align::kRight}});
  for (const GainSummary& summary : validation.gain_summaries) {
    table.AddRow(
        {summary.table, fmt::format("{}", summary.n), fmt::format("{}", summary.num_signs_right),
         fmt::format("{}", summary.num_signs_within_3_pct),
         fmt::format("{:.1f}", summary.median_abs_error_pct),
         fmt::format("{:+.1f}", summary.bias_pct),
         fmt::format("{:.1f}", summary.constant_baseline_pct), Number(summary.correlation, 2)});
  }
  return table;
}

reports::Table SkippedTable(const Validation& validation) {
  reports::Table table({{"rows", Align::kRight}, {"why skipped"}});
  std::vector<std::pair<int, std::string>> reasons;
  for (const auto& [reason, count] : validation.skipped_by_reason) {
    reasons.emplace_back(count, reason);
  }
  std::ranges::stable_sort(reasons, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [count, reason] : reasons) table.AddRow({fmt::format("{}", count), reason});
  return table;
}

std::string RenderText(const Validation& validation) {
  std::size_t predicted = 0;
  for (const RowResult& row : validation.rows) predicted += row.is_predicted ? 1 : 0;
  std::string text = fmt::format("{} rows: {} predicted, {} skipped\n\n", validation.rows.size(),
                                 predicted, validation.summary.num_skipped);
  reports::Table groups({{"by"},
                         {"group"},
                         {"rows", Align::kRight},
                         {"median %", Align::kRight},
                         {"p90 %", Align::kRight},
                         {"bias %", Align::kRight},
                         {"memory rows", Align::kRight},
                         {"median %", Align::kRight},
                         {"bias %", Align::kRight},
                         {"skipped", Align::kRight}});
  AddGroup(groups, validation.summary);
  for (const RowGroup& group : validation.groups) {
    if (groups.num_rows() < kGroupsShown) AddGroup(groups, group);
  }
  text += "Errors of step time and of peak memory\n" + groups.RenderText();
  if (!validation.gain_summaries.empty()) {
    text += "\nGains over the homogeneous layout\n" + GainSummaryTable(validation).RenderText();
  }
  const auto largest = LargestErrors(validation);
  if (!largest.empty()) {
    reports::Table table({{"row"},
                          {"model"},
                          {"measured s", Align::kRight},
                          {"predicted s", Align::kRight},
                          {"error %", Align::kRight}});
    for (const RowResult* row : largest) {
      table.AddRow({row->run.row_id, reports::Shorten(row->run.model, 40),
                    Number(row->run.measured_step_time_s, 3), Number(row->predicted_step_time_s, 3),
                    SignedPercent(row->error)});
    }
    text += "\nLargest errors\n" + table.RenderText();
  }
  if (validation.summary.num_skipped > 0) {
    text += "\nSkipped\n" + SkippedTable(validation).RenderText();
  }
  if (!validation.not_loaded.empty()) {
    text += fmt::format("\n{} rows of sets are in no given file or were filtered out\n",
                        validation.not_loaded.size());
  }
  if (!validation.skipped_in_sets.empty()) {
    text += fmt::format("\n{} rows of sets were skipped\n", validation.skipped_in_sets.size());
  }
  return text;
}

void WriteFolder(const Validation& validation, const std::filesystem::path& folder) {
  WriteTable(RowsTable(validation), "Rows", folder / "rows");
  WriteTable(GroupsTable(validation), "Errors by group", folder / "groups");
  WriteTable(GainsTable(validation), "Gains over the homogeneous layout", folder / "gains");
  WriteTable(GainSummaryTable(validation), "Gains by table", folder / "gain_summary");
  WriteTable(SkippedTable(validation), "Skipped rows", folder / "skipped");
  base::WriteFile(folder / "assumptions.md", AssumptionsText(validation));
  base::WriteFile(folder / "result.json", RenderJson(validation));
  for (const RowResult& row : validation.rows) {
    if (row.scenario_yaml.empty()) continue;
    base::WriteFile(
        folder / "scenarios" / FileName(row.run.table) / (FileName(row.run.row_id) + ".yaml"),
        row.scenario_yaml);
  }
}

}  // namespace isthmus::studies
