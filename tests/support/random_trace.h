#pragma once

#include <cstdint>

#include "traces/recorder.h"

namespace isthmus::tests_support {

/// How large a random trace is and what it holds.
struct RandomTraceShape {
  int num_classes = 4;
  int num_actions = 200;  // each an op of one class, a message between two, or a collective of all
  bool skewed_clocks = false;  // a receive may begin before its send
};

/// A trace of a run that never was, valid in every index, with whatever a trace may hold: lanes of
/// all kinds, ops with pieces (before or after the op's own event), overlapping messages, skipped
/// messages, waits, memory, odd texts. Every message that happened has both its events.
/// A function of seed and shape.
traces::Trace MakeRandomTrace(std::uint64_t seed, const RandomTraceShape& shape);

/// The receive events of a trace.
std::int64_t CountReceives(const traces::Trace& trace);

}  // namespace isthmus::tests_support
