#pragma once

#include <string>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::plan {

/// What Validate() found wrong; no problems mean a proof for this program.
struct [[nodiscard]] Validation {
  std::vector<std::string> problems;
  bool ok() const { return problems.empty(); }
};

/// Proves a program. In this order, later proofs only where the earlier ones hold:
/// - everything an op names exists, on a lane of its kind;
/// - every version of a value is produced once, before it is consumed and from the version before
///   it, and not consumed any more after the next one;
/// - every forward comes before its backward, once; microbatches in flight stay within the
///   schedule's bound, one more than the warm-up depth of the stage;
/// - both ends of a boundary list the same messages, and each message's bytes move once per
///   microbatch;
/// - no deadlock under strict rendezvous, transfers meet in order with equal sizes, members of a
///   communicator meet with the same op, and there is one order in which all ranks can run their
///   collectives one at a time, so communicators are issued in compatible order.
///
/// Cost: O(ops of all ranks), about 50 ns an op: 35 ms for 4,096 ranks with 190 ops each.
Validation Validate(const Program& program);

}  // namespace isthmus::plan
