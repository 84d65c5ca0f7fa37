#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traces/measured_row.h"

namespace isthmus::backend {

double WallTime();     // s, monotonic
double ThreadTime();   // s of processor time of the calling thread
double ProcessTime();  // s of processor time of all threads of the process

/// Samples of one figure, in seconds a call.
struct Samples {
  std::vector<double> values;
  /// The half-sample mode: of what only disturbances make longer.
  traces::MeasuredRow ToRow(std::string table, std::string point, bool held_out = false) const;
  /// The median: of what is long or short by turns, and counts in sums.
  traces::MeasuredRow ToMedianRow(std::string table, std::string point,
                                  bool held_out = false) const;
};

/// Processor time of the calling thread that a call of `run` takes.
///
/// Calls once to warm up; then samples of as many calls as make a fifth of a millisecond, until
/// `budget_s` is used up: at least three of them, at most twenty-five.
Samples TimeOnThread(const std::function<void()>& run, double budget_s);

}  // namespace isthmus::backend
