#pragma once

#include "traces/clock_skew.h"
#include "traces/recorder.h"

namespace isthmus::traces::internal {

/// The estimate that EstimateClockSkew describes. Needs at least one class.
ClockSkew FitClocks(const Trace& trace);

}  // namespace isthmus::traces::internal
