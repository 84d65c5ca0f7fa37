#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/shipped.h"
#include "sim/simulate.h"
#include "studies/band.h"
#include "studies/error_statistics.h"
#include "studies/run_case.h"
#include "studies/verdict_scores.h"

/// Predictions beside published or own runs.
namespace isthmus::studies {

struct ValidateOptions {
  std::vector<std::filesystem::path> files;
  std::string only_row;  ///< the id of the one row to take; "" takes all
  std::string filter;    ///< "column=value,…": rows that agree with all of them; "" takes all
  std::optional<std::filesystem::path> sets;  ///< CSV with columns set, row_id
  scenarios::SearchPaths search = scenarios::DefaultSearchPaths();
  sim::Network network = sim::Network::kNccl;
  std::string commit;
  int num_threads = 1;            ///< with flows 1: they take turns in a process
  bool with_alternatives = true;  ///< strict variant, bracket and band too, at some ten simulations
  /// Called after each row with the rows done and their total, from one thread at a time.
  std::function<void(std::size_t, std::size_t)> on_progress;
};

/// The step under one of a row's alternatives.
struct AlternativeTime {
  std::string what;
  AlternativeUse use = AlternativeUse::kOpen;
  double step_time_s = 0;
};

/// A row with its prediction, or the reason why it has none.
struct RowResult {
  RunCase run;  ///< `why` also says why a scenario could not be built or simulated
  bool is_predicted = false;
  /// What the row's table means by a step. Where microbatch or vpp is open, the midpoint.
  std::optional<double> predicted_step_time_s;
  std::optional<double> predicted_full_step_time_s;
  std::optional<double> predicted_memory_gib;  ///< by the row's counter
  std::optional<double> error;                 ///< of the step time, where both are known
  std::optional<double> memory_error;
  std::optional<double> strict_memory_error;
  std::string strict_verdict;
  /// The prediction without any value that was chosen after seeing runs: profiles::Profile::Strict
  /// and the release's defaults likewise.
  std::optional<double> strict_step_time_s;
  std::optional<double> strict_full_step_time_s;
  std::optional<double> strict_error;
  /// The fastest and the slowest step that the row's open cells allow, one beside the other.
  std::optional<reports::Band> bracket;
  std::vector<AlternativeTime> alternative_times;
  std::optional<StepBand> band;  ///< 80 %
  double work_flops = 0;         ///< model FLOP of a GPU in a step
  std::string set;               ///< the first that names the row
  std::string verdict;           ///< of memory: "fits", "borderline", "does_not_fit"
  std::vector<std::string> assumptions;
  std::string scenario_yaml;
};

/// Errors of the rows that have something in common: `by` "set", "table", "gpu", "framework",
/// "release", "precision", "model", "recipe".
struct RowGroup {
  std::string by;
  std::string name;
  int num_skipped = 0;
  ErrorStatistics step_time;
  ErrorStatistics strict;   ///< of the strict predictions
  ErrorStatistics recipes;  ///< a recipe is one observation: the median of its rows' errors
  ErrorStatistics memory;
  ErrorStatistics strict_memory;
  int num_with_band = 0;
  int num_in_band = 0;  ///< of these, measured within the 80 % band
};

/// A workload in another mode than H: what the step gains, t_H / t_mode - 1 of whole steps, per
/// cent.
struct Gain {
  std::string table;
  std::string workload;
  std::string mode;
  double measured_pct = 0;
  double predicted_pct = 0;
  double strict_pct = 0;  ///< predicted without values chosen after seeing runs
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

/// Two rows of one layout and nearly the same work whose times nothing of that explains.
struct Contradiction {
  std::string first;  ///< row ids, the faster one first
  std::string second;
  double work_ratio = 1;  ///< second over first
  double measured_ratio = 1;
  double predicted_ratio = 1;
  std::string differs;  ///< what tells the rows apart
};

/// The answer. Rows in the order of the files; everything else follows from them.
struct Validation {
  std::vector<RowResult> rows;
  RowGroup summary;
  std::vector<RowGroup> groups;
  std::map<std::string, int> skipped_by_reason;
  std::vector<Gain> gains;
  std::vector<GainSummary> gain_summaries;
  std::vector<Contradiction> contradictions;  ///< the largest first
  std::vector<VerdictScore> verdicts;         ///< where rows say that they ran out of memory
  /// Ids of sets that no given file holds, or that the filter left out.
  std::vector<std::string> not_loaded;
  std::vector<std::string> skipped_in_sets;  ///< "set row_id"
};

/// Reads the files, predicts every row that can be, and compares.
///
/// A row id that several files hold is taken from the first. Throws base::Error for files that
/// can't be read, a filter that names no column, an id twice in a file. Equal inputs give equal
/// answers, whatever num_threads is. Cost: 10 to 300 ms a row and thread.
Validation Validate(const ValidateOptions& options);

}  // namespace isthmus::studies
