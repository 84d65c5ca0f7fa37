#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/alignment.h"
#include "reports/figures.h"
#include "traces/check_measured.h"
#include "traces/clock_skew.h"

/// Where a prediction and a measurement of the same program differ.
namespace isthmus::reports {

/// A duration on both sides.
struct TwinTime {
  double predicted_s = 0;
  double measured_s = 0;

  double difference_s() const { return predicted_s - measured_s; }
  /// Relative to what was measured; nothing where that is 0.
  std::optional<double> error() const {
    if (!(measured_s > 0)) return std::nullopt;
    return predicted_s / measured_s - 1;
  }
};

/// Durations of the measured steps after the warm-up.
struct StepStatistics {
  std::int64_t num_steps = 0;
  std::int64_t num_warmup_steps = 0;
  double median_s = 0;
  double shortest_s = 0;
  double longest_s = 0;
  double spread = 0;  // (90th - 10th percentile) / median
};

/// Joined events of one kind. `time` is the sum of their durations (end - start: from when the last
/// partner came) per step, mean over all ranks.
struct ComparedRow {
  std::string key;
  std::int64_t num_events = 0;  // joined
  TwinTime time;
  double median_abs_error = 0;  // of single events with a measured duration
};

struct ComparedRank {
  std::int32_t rank = 0;
  std::string role;
  std::array<TwinTime, kNumTimeUses> uses{};  // per step; each side sums to its step
};

/// A part of the difference of the two steps, in picoseconds of the window.
struct ErrorTerm {
  std::int64_t predicted_ps = 0;
  std::int64_t measured_ps = 0;
  std::int64_t difference_ps() const { return predicted_ps - measured_ps; }
};

/// The measured critical path, priced twice.
///
/// The path is a chain of ops and transfers across ranks, each of which the next one waited for. On
/// both sides the window is cut at the starts and ends of these ops. What lies in an op is
/// computation, or moves data. What lies between an op and the next is wait, as long as something
/// else held the next one up on that side (measured, nothing did: it would be on the path) or its
/// partners were missing, and else host.
///
/// Invariant: the differences of the four sum to the difference of the windows, to the picosecond.
struct PathError {
  ErrorTerm compute;     // the optimizer included
  ErrorTerm collective;  // collectives, those inside blocks, messages, copies
  ErrorTerm wait;        // for partners, other stages, stragglers
  ErrorTerm host;
};

/// One op, or one transfer of it, on the rank where the two sides differ most.
struct ComparedOp {
  std::string name;
  std::string kind;
  std::string role;
  std::int32_t rank = 0;
  std::int32_t num_ranks = 0;  // ranks of the role that have it
  std::uint32_t op = 0;
  std::uint32_t transfer = 0;  // 1 + its index; 0: the op
  std::int32_t microbatch = -1;
  bool on_critical_path = false;  // of the measured step, on any rank
  TwinTime time;
};

/// An event that one side has and the other lacks.
struct LoneEvent {
  std::int32_t rank = 0;
  std::uint32_t op = 0;
  std::uint32_t transfer = 0;
  std::string name;
  bool predicted = false;  // which side has it
};

struct Comparison {
  Figures predicted;
  Figures measured;  // of the recorded step
  /// Predicted against the median of the measured steps, or the recorded one where there are none.
  TwinTime step_time;
  std::optional<StepStatistics> steps;
  std::int64_t predicted_window_ps = 0;
  std::int64_t measured_window_ps = 0;  // of the recorded step
  PathError path;
  std::vector<ComparedRow> categories;  // each list by the size of the difference, largest first
  std::vector<ComparedRow> kinds;       // "compute forward", "collective all_reduce", …
  std::vector<ComparedRow> modules;
  std::vector<ComparedRow> ops;     // by name, microbatches together
  std::vector<ComparedRank> ranks;  // by rank
  std::vector<ComparedOp> worst_ops;
  std::int64_t num_joined = 0;
  std::vector<LoneEvent> lone;  // by rank and op
  traces::ClockSkew skew;
  std::vector<traces::MeasuredProblem> problems;
  std::map<std::string, std::string> software;
  std::vector<std::string> notes;
};

struct ComparisonOptions {
  int num_worst_ops = 10;
};

/// Compares, by one set of rules for both sides (Analysis). Cost: O(events · log), both traces in
/// memory.
Comparison Compare(const AlignedTraces& traces, const ComparisonOptions& options = {});

}  // namespace isthmus::reports
