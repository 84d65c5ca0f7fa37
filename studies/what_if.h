#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/step_difference.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"

/// What becomes of a step when something is changed (`isthmus whatif`).
namespace isthmus::studies {

struct WhatIfOptions {
  std::filesystem::path scenario;
  std::vector<std::string> overrides;  ///< of the base, as LoadScenario takes them
  std::vector<std::string> changes;  ///< made together, on top; values may be relative to the base
  sim::Network network = sim::Network::kNccl;
  double max_other = 0.05;  ///< see reports::TakeApart
  std::string commit;       ///< stated in the figures
};

/// Simulates a step of the scenario and of the changed one, and takes the difference apart.
///
/// Throws base::ScenarioError with every mistake, one of a change at `--change key`; base::Error
/// where there is nothing to compare: no changes, or a profile that prices no kernels.
/// Cost: two simulations with their traces' paths in memory; with flows of every rank.
reports::StepDifference WhatIf(const WhatIfOptions& options);

}  // namespace isthmus::studies
