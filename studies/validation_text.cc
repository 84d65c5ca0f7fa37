#include "studies/validation_text.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file_io.h"
#include "studies/internal/cells.h"
#include "studies/scatter_svg.h"

namespace isthmus::studies {
namespace {

using namespace internal;
using reports::Align;

constexpr std::size_t kLargestErrors = 5;
constexpr std::size_t kGroupsShown = 40;

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
  table.AddRow(
      {group.by, reports::Shorten(group.name, 40), fmt::format("{}", group.step_time.n),
       Percent(group.step_time.median_abs_error), Percent(group.step_time.p90_abs_error),
       SignedPercent(group.step_time.mean_signed_error), Percent(group.strict.median_abs_error),
       Percent(group.strict.p90_abs_error), SignedPercent(group.strict.mean_signed_error),
       fmt::format("{}", group.recipes.n), Percent(group.recipes.median_abs_error),
       Percent(ShareInBand(group)), fmt::format("{}", group.memory.n),
       Percent(group.memory.median_abs_error), SignedPercent(group.memory.mean_signed_error),
       Percent(group.strict_memory.median_abs_error), fmt::format("{}", group.num_skipped)});
}

reports::Table ShortGroupsTable(const Validation& validation) {
  reports::Table table({{"by"},
                        {"group"},
                        {"rows", Align::kRight},
                        {"median %", Align::kRight},
                        {"p90 %", Align::kRight},
                        {"bias %", Align::kRight},
                        {"strict: median %", Align::kRight},
                        {"p90 %", Align::kRight},
                        {"bias %", Align::kRight},
                        {"recipes", Align::kRight},
                        {"median %", Align::kRight},
                        {"in band %", Align::kRight},
                        {"memory rows", Align::kRight},
                        {"median %", Align::kRight},
                        {"bias %", Align::kRight},
                        {"strict %", Align::kRight},
                        {"skipped", Align::kRight}});
  AddGroup(table, validation.summary);
  for (const RowGroup& group : validation.groups) {
    if (table.num_rows() < kGroupsShown) AddGroup(table, group);
  }
  return table;
}

reports::Table LargestErrorsTable(const std::vector<const RowResult*>& largest) {
  reports::Table table({{"row"},
                        {"model"},
                        {"measured s", Align::kRight},
                        {"predicted s", Align::kRight},
                        {"error %", Align::kRight},
                        {"bracket s", Align::kRight},
                        {"80 % band s", Align::kRight}});
  for (const RowResult* row : largest) {
    table.AddRow(
        {row->run.row_id, reports::Shorten(row->run.model, 40),
         Number(row->run.measured_step_time_s, 3), Number(row->predicted_step_time_s, 3),
         SignedPercent(row->error),
         row->bracket ? Range(row->bracket->low_step_time_s, row->bracket->high_step_time_s) : "",
         row->band ? Range(row->band->low_step_time_s, row->band->high_step_time_s) : ""});
  }
  return table;
}

std::string AssumptionsText(const Validation& validation) {
  std::string text = "# Assumptions by row\n\nWhat a row leaves open and how it was filled.\n";
  for (const RowResult& row : validation.rows) {
    if (!row.is_predicted) continue;
    text += fmt::format("\n## {}: {}\n\n", row.run.row_id, row.run.model);
    for (const std::string& assumption : row.assumptions) text += "- " + assumption + "\n";
    for (const Alternative& alternative : row.run.alternatives) {
      text += fmt::format("- open, in the bracket: {}\n", alternative.what);
    }
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

std::string RenderText(const Validation& validation) {
  std::size_t predicted = 0;
  for (const RowResult& row : validation.rows) predicted += row.is_predicted ? 1 : 0;
  std::string text = fmt::format("{} rows: {} predicted, {} skipped\n\n", validation.rows.size(),
                                 predicted, validation.summary.num_skipped);
  text += "Errors of step time and of peak memory\n" + ShortGroupsTable(validation).RenderText();
  if (!validation.gain_summaries.empty()) {
    text += "\nGains over the homogeneous layout\n" + GainSummaryTable(validation).RenderText();
  }
  if (!validation.contradictions.empty()) {
    text += "\nRows that contradict one another: no setting they share explains both\n" +
            ContradictionsTable(validation).RenderText();
  }
  if (!validation.verdicts.empty()) {
    text += "\nOut of memory or not; borderline counts as fits\n" +
            VerdictsTable(validation).RenderText();
  }
  const auto largest = LargestErrors(validation);
  if (!largest.empty()) {
    text += "\nLargest errors\n" + LargestErrorsTable(largest).RenderText();
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
  WriteTable(ContradictionsTable(validation), "Rows that contradict one another",
             folder / "contradictions");
  WriteTable(VerdictsTable(validation), "Out of memory or not; borderline counts as fits",
             folder / "verdicts");
  WriteTable(SkippedTable(validation), "Skipped rows", folder / "skipped");
  base::WriteFile(folder / "assumptions.md", AssumptionsText(validation));
  base::WriteFile(folder / "result.json", RenderJson(validation));
  const std::string plot = RenderScatterSvg(validation);
  if (!plot.empty()) base::WriteFile(folder / "scatter.svg", plot);
  for (const RowResult& row : validation.rows) {
    if (row.scenario_yaml.empty()) continue;
    base::WriteFile(
        folder / "scenarios" / FileName(row.run.table) / (FileName(row.run.row_id) + ".yaml"),
        row.scenario_yaml);
  }
}

}  // namespace isthmus::studies
