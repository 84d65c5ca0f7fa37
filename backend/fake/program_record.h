#pragma once

#include "backend/fake/execute.h"
#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::backend {

/// The static half of a measured trace: what the program says about ops, lanes, groups and peers,
/// one class per rank. Class r is rank r; Header::groups are the communicators of all ranks, each
/// once, numbered in the order of their first rank. Machine facts (peak rate, nodes, memory) stay
/// empty.
traces::Header DescribeProgram(const plan::Program& program, const ExecuteOptions& options);

}  // namespace isthmus::backend
