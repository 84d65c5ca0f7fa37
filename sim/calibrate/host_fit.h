#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/profile.h"
#include "traces/measured_row.h"

/// From measurements of a machine to a profile of it. Pure functions.
namespace isthmus::sim {

/// What is known of a host without measuring.
struct HostFacts {
  std::string name = "cpu-host";
  std::string date;  ///< ISO 8601
  int cores = 1;
  std::int64_t memory_bytes = 0;
};

/// The profile of a host, from the rows of its ranks.
///
/// Products, attention and memory-bound kernels: rate = work / (time - dispatch), where dispatch is
/// at most kMaxDispatchShare of the time; work is plan::FlopsOf, or the bytes in the row's point.
/// Collectives and messages: `core` as measured, and
///
///     wait = max(0, time - core · max(1, n / cores))
///
/// n being the ranks that shared the cores while it was measured (a row's busy_ranks); both are
/// made to rise with the size, base::NeverFalling, and core is cut to what the cores can have done
/// in the time. Speeds of k busy ranks: the processor time of one rank's work alone over that among
/// k, at most 1, never rising with k.
///
/// A point's residual is the spread of its samples. Every table gets a parameter `<table>.check`:
/// the signed median error of the finished model on rows that were held out, with their residual.
///
/// Throws base::Error naming the table if rows that a profile needs are missing or not positive.
/// docs/calibrate.md; pinned by tests/unit/sim/host_fit_test.cc.
profiles::Profile FitHost(const std::vector<traces::MeasuredRow>& rows, const HostFacts& facts);

}  // namespace isthmus::sim
