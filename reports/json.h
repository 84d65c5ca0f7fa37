#pragma once

#include <string>

#include "reports/comparison.h"
#include "reports/figures.h"
#include "reports/step_difference.h"

namespace isthmus::reports {

/// The figures as one JSON object, the answer of `isthmus simulate --json`; ends with a line break.
///
/// Keys are a contract: later ones are added, none is renamed. Units stand in the keys, shares are
/// fractions. Numbers are the shortest text that reads back to the same value, independent of the
/// locale; equal figures give equal bytes. Per-class times are not in it (shares_by_role is).
std::string RenderJson(const Figures& figures);

/// The comparison as one JSON object, the answer of `isthmus compare --json`, by the same rules.
/// docs/compare.md lists the keys.
std::string RenderJson(const Comparison& comparison);

/// What a change does, the answer of `isthmus whatif --json`, by the same rules. docs/whatif.md
/// lists the keys.
std::string RenderJson(const StepDifference& difference);

}  // namespace isthmus::reports
