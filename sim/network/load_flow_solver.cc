#include "base/shared_library.h"
#include "sim/network/flow_solver.h"

namespace isthmus::sim {

std::unique_ptr<FlowSolver> LoadFlowSolver() {
  static auto* const make = reinterpret_cast<MakeFlowSolverFunction*>(base::LoadFunction(
      "libisthmus_flow.so", kMakeFlowSolver,
      "--network flow needs it; scripts/setup.sh installs libsimgrid-dev, then build again"));
  return std::unique_ptr<FlowSolver>(make());
}

}  // namespace isthmus::sim
