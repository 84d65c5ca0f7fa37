#pragma once

#include <string>
#include <vector>

#include "traces/clock_skew.h"
#include "traces/recorder.h"

namespace isthmus::reports {

/// A predicted and a measured trace of one program, brought to one form: class r is rank r on both
/// sides, op ids and transfer indices are the same, so events are joined by (class, op, inner).
///
/// Invariant: classes, and per class the number of ops and of each op's transfers, are the same on
/// both sides.
struct AlignedTraces {
  traces::Trace predicted;         // every rank has the events of its class
  traces::Trace measured;          // on one clock, starts by the last partner
  traces::ClockSkew skew;          // what was taken out of `measured`
  std::vector<std::string> notes;  // what had to be assumed, in words
};

/// Aligns two traces.
///
/// Predicted ranks that were simulated together are taken apart. The measured trace is put on one
/// clock (traces::PutOnOneClock). Where the pieces of a block were
/// timed, they give the split of its Compute ops into computation and inner communication; where
/// not, the split is the predicted one, scaled, and a note says so.
///
/// Throws base::Error, with what differs, when the first is not predicted or the second not
/// measured, when they are of different programs, when the prediction has no times, or when a
/// measured rank has no class of its own.
AlignedTraces AlignTraces(traces::Trace predicted, traces::Trace measured);

}  // namespace isthmus::reports
