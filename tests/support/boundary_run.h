#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/boundary/boundary.h"

/// Executes the steps of a boundary on real values, one number a token, with all ranks in
/// lock-step.
namespace isthmus::tests {

enum class BoundaryDirection { kForward, kBackward };

/// Values of consecutive tokens from `begin` on.
struct TokenBuffer {
  std::int64_t begin = 0;
  std::vector<std::uint64_t> values;
};

/// What every rank holds in the end, or the first thing that went wrong: members of a communicator
/// that disagree on its members, sizes or kind, parts of the wrong size, unmatched messages, ranks
/// that wait for ever.
struct BoundaryOutcome {
  std::vector<TokenBuffer> buffers;
  std::optional<std::string> failure;
};

/// Runs one direction. `buffers`: what each rank holds at the start. Sums are modulo 2^64. As in a
/// real executor, positions follow from sizes and slot order alone: the values carry no names.
BoundaryOutcome RunBoundary(const plan::Boundary& boundary, BoundaryDirection direction,
                            std::vector<TokenBuffer> buffers);

}  // namespace isthmus::tests
