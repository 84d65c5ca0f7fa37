#pragma once

#include <string>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan {

/// What Validate() found wrong; empty messages mean a proof for this program.
struct Validation {
  std::vector<std::string> problems;
  bool ok() const { return problems.empty(); }
};

/// Proves a program: every version of a value is produced before it is consumed, once; every
/// forward comes before its backward; transfers match on both sides in order and size; no deadlock
/// under strict rendezvous; communicators are issued in compatible order on all their ranks;
/// in-flight microbatches stay within the schedule's bound; boundary bytes are conserved.
///
/// Cost: O(ops of all ranks); ranks that fold are checked once where that is exact.
Validation Validate(const Program& program);

}  // namespace isthmus::plan
