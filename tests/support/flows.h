#pragma once

#include "base/error.h"
#include "sim/network/flow_solver.h"

namespace isthmus::tests {

/// Whether flows that meet can be simulated: SimGrid was there when this was built.
inline bool HasFlows() {
  try {
    return sim::LoadFlowSolver() != nullptr;
  } catch (const base::IoError&) {
    return false;
  }
}

}  // namespace isthmus::tests
