#pragma once

#include <string>
#include <vector>

#include "plan/program/program.h"
#include "tests/support/torch/recording_backend.h"

namespace isthmus::tests {

/// A call that the program wants, and the communicator it is for: names are equal on all members,
/// and one name and set of members is one communicator.
struct PlannedCall {
  C10dCall call;  // its number means nothing
  std::string communicator;
};

/// What one step of the program asks of c10d on a rank, in order: inner collectives of Compute ops,
/// Collective ops, messages; nothing that has one member or no bytes.
///
/// Unequal parts of an all-gather and buckets that the group doesn't divide are padded: c10d deals
/// in equal parts. Of an all-to-all-v the rank's own share is given; that the op's size is the
/// busiest member's, as plan/boundary/boundary.h has it, is checked here.
std::vector<PlannedCall> PlanCalls(const plan::Program& program, base::Rank rank);

}  // namespace isthmus::tests
