#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/shipped.h"
#include "studies/error_statistics.h"
#include "studies/run_case.h"

/// Predictions beside published or own runs.
namespace isthmus::studies {

struct ValidateOptions {
  std::vector<std::filesystem::path> files;
  std::string filter;  ///< "column=value,…": rows that agree with all of them; "" takes all
  std::optional<std::filesystem::path> sets;  ///< CSV with columns set, row_id
  scenarios::SearchPaths search = scenarios::DefaultSearchPaths();
  std::string commit;
  int num_threads = 1;
  /// Called after each row with the rows done and their total, from one thread at a time.
  std::function<void(std::size_t, std::size_t)> on_progress;
};

/// A row with its prediction, or the reason why it has none.
struct RowResult {
  RunCase run;  ///< `why` also says why a scenario could not be built or simulated
  bool is_predicted = false;
  std::optional<double> predicted_step_time_s;  ///< what the row's table means by a step
  std::optional<double> predicted_full_step_time_s;
  std::optional<double> predicted_memory_gib;  ///< by the row's counter
  std::optional<double> error;                 ///< of the step time, where both are known
  std::optional<double> memory_error;
  std::string verdict;  ///< of memory: "fits", "borderline", "does_not_fit"
  std::vector<std::string> assumptions;
  std::string scenario_yaml;
};

/// Errors of the rows that have something in common: `by` "set", "table", "gpu", "model",
/// "framework".
struct RowGroup {
  std::string by;
  std::string name;
  int num_skipped = 0;
  ErrorStatistics step_time;
  ErrorStatistics memory;
};

/// A workload in another mode than H: what the step gains, t_H / t_mode - 1 of whole steps, per
/// cent.
struct Gain {
  std::string table;
  std::string workload;
  std::string mode;
  double measured_pct = 0;
  double predicted_pct = 0;
};

/// How well gains of one table, or of all ("all"), are told.
struct GainSummary {
  std::string table;
  int n = 0;
  int num_signs_right = 0;         ///< strictly
  int num_signs_within_3_pct = 0;  ///< gains below 3 points on both sides agree too
  double median_abs_error_pct = 0;
  double bias_pct = 0;
  /// Of the guess that every gain is its table's measured median.
  double constant_baseline_pct = 0;
  std::optional<double> correlation;
};

/// The answer. Rows in the order of the files; everything else follows from them.
struct Validation {
  std::vector<RowResult> rows;
  RowGroup summary;
  std::vector<RowGroup> groups;
  std::map<std::string, int> skipped_by_reason;
  std::vector<Gain> gains;
  std::vector<GainSummary> gain_summaries;
  /// Ids of sets that no given file holds, or that the filter left out.
  std::vector<std::string> not_loaded;
  std::vector<std::string> skipped_in_sets;  ///< "set row_id"
};

/// Reads the files, predicts every row that can be, and compares.
///
/// A row id that several files hold is taken from the first. Throws base::Error for files that
/// can't be read, a filter that names no column, an id twice in a file. Equal inputs give equal
/// answers, whatever num_threads is. Cost: about 0.1 s a row.
Validation Validate(const ValidateOptions& options);

}  // namespace isthmus::studies
