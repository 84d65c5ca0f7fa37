#include "studies/validate.h"

#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "studies/contradictions.h"
#include "studies/internal/row_prediction.h"
#include "studies/validation_groups.h"

namespace isthmus::studies {
namespace {

struct Condition {
  std::string column;
  std::string value;
};

std::vector<Condition> ParseFilter(const std::string& text) {
  std::vector<Condition> conditions;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw base::Error(fmt::format("--filter: '{}' is not of the form column=value", part));
    }
    conditions.push_back({part.substr(0, equals), part.substr(equals + 1)});
    begin = end + 1;
  }
  return conditions;
}

void CheckColumns(const CsvTable& table, const std::vector<Condition>& filter) {
  for (const Condition& condition : filter) {
    if (table.Find(condition.column)) continue;
    throw base::Error(fmt::format("--filter: {} has no column '{}'\n  hint: its columns are {}",
                                  table.label, condition.column, fmt::join(table.columns, ", ")));
  }
}

bool Matches(const RunsRow& row, const std::vector<Condition>& filter) {
  for (const Condition& condition : filter) {
    if (row.text(condition.column) != condition.value) return false;
  }
  return true;
}

// A row before it is simulated; cases are made in parallel too, since some load a scenario.
struct PendingRow {
  RunsRow row;
  RunsKind kind;
};

std::vector<PendingRow> SelectRows(const std::vector<CsvTable>& tables,
                                   const ValidateOptions& options) {
  const std::vector<Condition> conditions = ParseFilter(options.filter);
  std::vector<PendingRow> rows;
  std::set<std::string> earlier;
  for (const CsvTable& table : tables) {
    const RunsKind kind = DetectKind(table);
    CheckColumns(table, conditions);
    std::set<std::string> ids;
    for (std::size_t index = 0; index < table.rows.size(); ++index) {
      const RunsRow row(table, index);
      const std::string& id = row.text(kind == RunsKind::kPaperRuns ? "id" : "row_id");
      if (id.empty() || !ids.insert(id).second) {
        throw base::Error(base::FormatDiagnostic(
            {.file = table.label,
             .line = row.line(),
             .message =
                 id.empty() ? "the row has no id" : fmt::format("row {} is there twice", id)}));
      }
      const bool is_asked_for = options.only_row.empty() || options.only_row == id;
      if (is_asked_for && !earlier.contains(id) && Matches(row, conditions)) {
        rows.push_back({row, kind});
      }
    }
    earlier.merge(ids);
  }
  return rows;
}

// Runs `work` on every index below `count` on several threads; the first exception of the lowest
// index is thrown again.
void ForEachIndex(std::size_t count, int num_threads,
                  const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(count);
  const auto run = [&] {
    for (std::size_t index = next++; index < count; index = next++) {
      try {
        work(index);
      } catch (...) {
        failures[index] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 1; thread < num_threads; ++thread) threads.emplace_back(run);
    run();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

Validation Validate(const ValidateOptions& options) {
  std::vector<CsvTable> tables;
  for (const std::filesystem::path& file : options.files) tables.push_back(ReadCsv(file));
  std::optional<RowSets> sets;
  if (options.sets) sets = ReadSets(*options.sets);
  const std::vector<PendingRow> pending = SelectRows(tables, options);

  Validation validation;
  validation.rows.resize(pending.size());
  std::mutex progress_lock;
  std::size_t done = 0;
  ForEachIndex(pending.size(), options.num_threads, [&](std::size_t index) {
    validation.rows[index] = internal::PredictRow(
        MakeCase(pending[index].row, pending[index].kind, options.search), options);
    const std::lock_guard lock(progress_lock);
    ++done;
    if (options.on_progress) options.on_progress(done, pending.size());
  });
  GroupRows(sets ? &*sets : nullptr, validation);
  CompareGains(validation);
  validation.contradictions = FindContradictions(validation.rows);
  validation.verdicts = ScoreVerdicts(validation.rows);
  return validation;
}

}  // namespace isthmus::studies
