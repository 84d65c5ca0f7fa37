#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/recorder.h"

namespace isthmus::traces {

/// Something that can't be in a measured trace of a program.
struct MeasuredProblem {
  enum class Kind : std::uint8_t {
    kMissing,     // an op or a transfer with bytes has no event, or has two
    kDependency,  // an op came to its turn before a value it consumes was there
    kLaneOrder,   // ops of a lane started in another order than the program's
    kSequence,    // members of a communicator met for different ops, or in another number
    kCausality,   // a receive was over before its send was posted, a member before the last came
  };
  Kind kind = Kind::kMissing;
  std::string text;  // "rank 3: op 17 'forward …' …"
};
/// "missing", "dependency", "lane_order", "sequence", "causality".
const char* ToText(MeasuredProblem::Kind kind);

struct MeasuredCheck {
  /// What a rank's own clock can tell apart.
  std::int64_t resolution_ps = 1'000;
  /// What is left between the clocks of two ranks; see ClockSkew.
  std::int64_t skew_ps = 1'000;
};

/// Checks a measured trace against itself: the header says what must depend on what and who must
/// meet whom, the events say what happened. A predicted trace that is not folded has no problems.
///
/// Needs one class per rank, and clocks without skew (RemoveClockSkew). Returns all problems, by
/// kind and then by rank or communicator; none is good.
/// Cost: O(events · log + dependencies).
std::vector<MeasuredProblem> CheckMeasured(const Trace& trace, const MeasuredCheck& check = {});

}  // namespace isthmus::traces
