#pragma once

#include <cstdint>

#include "reports/comparison.h"
#include "reports/internal/critical_path.h"
#include "reports/internal/run_record.h"
#include "reports/internal/window.h"

namespace isthmus::reports {

/// One side of a PathError in picoseconds; sums to the window's length.
struct PathCost {
  std::int64_t compute = 0;
  std::int64_t collective = 0;
  std::int64_t wait = 0;
  std::int64_t host = 0;
};

/// Cuts the window of a run at the ops of a path, which may be that of another run of the program.
///
/// Between a cause and what comes next, up to when the waiting op was ready by this run's own
/// causes is wait, from there to its issue host, from its issue to that of its last partner wait,
/// and what is left host. Imposed waits are what they say.
PathCost PriceAlong(const CriticalPath& path, const RunRecord& record, const Window& window);

}  // namespace isthmus::reports
