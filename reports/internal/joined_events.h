#pragma once

#include "reports/comparison.h"
#include "reports/internal/critical_path.h"
#include "reports/internal/run_record.h"
#include "traces/trace.h"

namespace isthmus::reports {

/// Aligned traces in compact form. Lifetime: what it refers to must outlive it.
struct BothRecords {
  const traces::Header& header;  // of the measured one
  const RunRecord& predicted;
  const RunRecord& measured;
};

/// Joins the events of both sides: sums their durations by category, kind, module and name, counts
/// and lists what has no twin, and picks the ops that differ most; marks those that lie on `path`.
void JoinEvents(const BothRecords& records, const CriticalPath& path, int num_worst,
                Comparison& result);

}  // namespace isthmus::reports
