#pragma once

#include <string>

#include "reports/figures.h"
#include "scenarios/scenario.h"

namespace isthmus::studies {

struct Prediction {
  reports::Figures figures;
  double step_time_s = 0;              ///< what the scenario's `step.metric` asks for
  double forward_backward_time_s = 0;  ///< see reports::ForwardBackward
};

/// Builds the scenario's program and simulates one step, ranks that do the same folded, with the
/// `nccl` network. `commit` is stated in the figures.
///
/// Throws base::Error when the profile lacks a parameter or the program deadlocks. Thread-safe.
Prediction Predict(const scenarios::Scenario& scenario, const std::string& commit);

}  // namespace isthmus::studies
