#pragma once

#include <cstdint>
#include <vector>

#include "reports/figures.h"
#include "reports/internal/run_record.h"
#include "reports/internal/window.h"

namespace isthmus::reports {

/// A class's time and, by edge, its exposed boundary communication in picoseconds.
struct ClassSplit {
  ClassTime time;
  std::vector<std::int64_t> exposed_by_edge_ps;
};

/// Splits a class's time by the rules of Analysis. The uses sum to the window's length.
ClassSplit SplitTime(const RunRecord& record, std::uint32_t rank_class, const Window& window,
                     std::size_t num_edges);

}  // namespace isthmus::reports
