#pragma once

#include "traces/recorder.h"

namespace isthmus::traces {

/// Two ranks, one step. Rank 0 computes "forward" from 1 ns to 5 ns in two pieces ("qkv" to 3 ns,
/// then the tp collective of "out"), waits as a straggler to 6 ns and sends 64 bytes from 6 ns to 8
/// ns; rank 1 receives them and computes "backward" from 8 ns to 9.5 ns.
Trace SmallTrace();

}  // namespace isthmus::traces
