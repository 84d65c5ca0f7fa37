#pragma once

#include <string>

#include "reports/comparison.h"
#include "reports/figures.h"
#include "reports/step_difference.h"

namespace isthmus::reports {

struct TextOptions {
  bool color = false;    // terminal colours; the caller knows whether it writes to a terminal
  int width = 100;       // columns to fill; at least 60 are used
  bool verbose = false;  // every assumption, times by role, the longest pieces of the critical path
};

/// The terminal report: what runs where, step time and rates, where the time goes, what crosses the
/// boundaries, memory by role, the critical path, assumptions, and what it was computed from.
///
/// UTF-8, ends with a line break. Equal figures and options give equal bytes.
std::string RenderText(const Figures& figures, const TextOptions& options = {});

/// The comparison for the terminal: the step, what its error consists of, where the time goes on
/// both sides, errors by kind of op, worst ops, ranks, clocks, and what doesn't fit. Compact unless
/// verbose: then every rank, module, op name, category and problem.
std::string RenderText(const Comparison& comparison, const TextOptions& options = {});

/// What a change does, for the terminal: the values, both steps, and the terms of their difference
/// with those that are "other" as one.
std::string RenderText(const StepDifference& difference, const TextOptions& options = {});

}  // namespace isthmus::reports
