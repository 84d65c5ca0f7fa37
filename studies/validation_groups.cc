#include "studies/validation_groups.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "studies/internal/cells.h"
#include "studies/runs_csv.h"

namespace isthmus::studies {
namespace {

using Members = std::vector<const RowResult*>;

// A recipe's error is the median of its rows'; a row without a recipe is one of its own.
ErrorStatistics OfRecipes(const Members& rows) {
  std::map<std::string, std::vector<double>> errors;
  for (const RowResult* row : rows) {
    if (!row->error) continue;
    errors[row->run.recipe.empty() ? row->run.row_id : row->run.recipe].push_back(*row->error);
  }
  std::vector<double> medians;
  for (auto& [recipe, all] : errors) medians.push_back(Quantile(std::move(all), 0.5));
  return Summarise(medians);
}

RowGroup GroupOf(std::string by, std::string name, const Members& rows) {
  RowGroup group{.by = std::move(by), .name = std::move(name)};
  std::vector<double> time_errors;
  std::vector<double> strict_errors;
  std::vector<double> memory_errors;
  std::vector<double> strict_memory_errors;
  for (const RowResult* row : rows) {
    if (!row->is_predicted) ++group.num_skipped;
    if (row->error) time_errors.push_back(*row->error);
    if (row->strict_error) strict_errors.push_back(*row->strict_error);
    if (row->memory_error) memory_errors.push_back(*row->memory_error);
    if (row->strict_memory_error) strict_memory_errors.push_back(*row->strict_memory_error);
    if (row->band && row->error) ++group.num_with_band;
    group.num_in_band += internal::IsInBand(*row) ? 1 : 0;
  }
  group.step_time = Summarise(time_errors);
  group.strict = Summarise(strict_errors);
  group.recipes = OfRecipes(rows);
  group.memory = Summarise(memory_errors);
  group.strict_memory = Summarise(strict_memory_errors);
  return group;
}

void GroupBy(const char* by, const std::string RunCase::*key, Validation& validation) {
  std::map<std::string, Members> members;
  for (const RowResult& row : validation.rows) {
    if (row.is_predicted) members[row.run.*key].push_back(&row);
  }
  for (const auto& [name, rows] : members) {
    validation.groups.push_back(GroupOf(by, name.empty() ? "(none)" : name, rows));
  }
}

void GroupBySet(const RowSets& sets, Validation& validation) {
  std::map<std::string, RowResult*> rows;
  for (RowResult& row : validation.rows) rows[row.run.row_id] = &row;
  for (const auto& [name, ids] : sets.sets) {
    Members members;
    for (const std::string& id : ids) {
      const auto found = rows.find(id);
      if (found == rows.end()) {
        validation.not_loaded.push_back(fmt::format("{} {}", name, id));
        continue;
      }
      members.push_back(found->second);
      if (found->second->set.empty()) found->second->set = name;
      if (!found->second->is_predicted) {
        validation.skipped_in_sets.push_back(fmt::format("{} {}", name, id));
      }
    }
    if (!members.empty()) validation.groups.push_back(GroupOf("set", name, members));
  }
}

bool HasSameSign(const Gain& gain) {
  return std::signbit(gain.measured_pct) == std::signbit(gain.predicted_pct);
}

double MedianOfMeasured(const std::vector<Gain>& gains, const std::string& table) {
  std::vector<double> measured;
  for (const Gain& gain : gains) {
    if (gain.table == table) measured.push_back(gain.measured_pct);
  }
  return Quantile(std::move(measured), 0.5);
}

GainSummary SummariseGains(const std::vector<Gain>& all, const std::string& table) {
  constexpr double kDeadZonePct = 3.0;
  GainSummary summary{.table = table};
  std::vector<double> measured;
  std::vector<double> predicted;
  std::vector<double> errors;
  std::vector<double> baseline;
  for (const Gain& gain : all) {
    if (table != "all" && gain.table != table) continue;
    const bool is_small =
        std::abs(gain.measured_pct) < kDeadZonePct && std::abs(gain.predicted_pct) < kDeadZonePct;
    summary.num_signs_right += HasSameSign(gain) ? 1 : 0;
    summary.num_signs_within_3_pct += HasSameSign(gain) || is_small ? 1 : 0;
    measured.push_back(gain.measured_pct);
    predicted.push_back(gain.predicted_pct);
    errors.push_back(gain.predicted_pct - gain.measured_pct);
    baseline.push_back(gain.measured_pct - MedianOfMeasured(all, gain.table));
  }
  summary.n = static_cast<int>(errors.size());
  const ErrorStatistics statistics = Summarise(errors);
  summary.median_abs_error_pct = *statistics.median_abs_error;
  summary.bias_pct = *statistics.mean_signed_error;
  summary.constant_baseline_pct = *Summarise(baseline).median_abs_error;
  summary.correlation = Correlation(measured, predicted);
  return summary;
}

}  // namespace

RowSets ReadSets(const std::filesystem::path& path) {
  const CsvTable table = ReadCsv(path);
  for (const char* column : {"set", "row_id"}) {
    if (table.Find(column)) continue;
    throw base::Error(
        base::FormatDiagnostic({.file = table.label,
                                .line = 1,
                                .message = fmt::format("column {} is missing", column),
                                .hint = "a file of sets has the columns set and row_id"}));
  }
  RowSets sets;
  for (std::size_t index = 0; index < table.rows.size(); ++index) {
    const RunsRow row(table, index);
    const std::string& name = row.text("set");
    auto found = std::ranges::find(sets.sets, name, [](const auto& set) { return set.first; });
    if (found == sets.sets.end()) found = sets.sets.insert(found, {name, {}});
    found->second.push_back(row.text("row_id"));
  }
  return sets;
}

void GroupRows(const RowSets* sets, Validation& validation) {
  Members all;
  for (const RowResult& row : validation.rows) {
    all.push_back(&row);
    if (!row.is_predicted) ++validation.skipped_by_reason[row.run.why];
  }
  validation.summary = GroupOf("all", "all", all);
  if (sets != nullptr) GroupBySet(*sets, validation);
  GroupBy("table", &RunCase::table, validation);
  GroupBy("gpu", &RunCase::gpu, validation);
  GroupBy("framework", &RunCase::framework, validation);
  GroupBy("release", &RunCase::release, validation);
  GroupBy("precision", &RunCase::precision, validation);
  GroupBy("model", &RunCase::model, validation);
  GroupBy("recipe", &RunCase::recipe, validation);
}

void CompareGains(Validation& validation) {
  std::map<std::string, const RowResult*> homogeneous;
  for (const RowResult& row : validation.rows) {
    if (row.is_predicted && row.run.mode == "H") homogeneous[row.run.workload] = &row;
  }
  std::vector<std::string> tables;
  for (const RowResult& row : validation.rows) {
    const auto base = homogeneous.find(row.run.workload);
    const bool is_paired = row.is_predicted && row.run.mode != "H" && !row.run.mode.empty() &&
                           base != homogeneous.end() && row.run.measured_gain_pct;
    if (!is_paired) continue;
    const RowResult& h = *base->second;
    const double ratio = *h.predicted_full_step_time_s / *row.predicted_full_step_time_s;
    const bool has_strict = h.strict_full_step_time_s && row.strict_full_step_time_s;
    const double strict =
        has_strict ? *h.strict_full_step_time_s / *row.strict_full_step_time_s : ratio;
    validation.gains.push_back({.table = row.run.table,
                                .workload = row.run.workload,
                                .mode = row.run.mode,
                                .measured_pct = *row.run.measured_gain_pct,
                                .predicted_pct = (ratio - 1) * 100,
                                .strict_pct = (strict - 1) * 100});
    if (std::ranges::find(tables, row.run.table) == tables.end()) tables.push_back(row.run.table);
  }
  if (tables.size() > 1) tables.emplace_back("all");
  for (const std::string& table : tables) {
    validation.gain_summaries.push_back(SummariseGains(validation.gains, table));
  }
}

}  // namespace isthmus::studies
