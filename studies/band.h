#pragma once

#include <string>
#include <vector>

#include "studies/predict.h"

namespace isthmus::studies {

/// What one uncertain input does to a step, as a share of its time: low ≤ 0 ≤ high.
struct BandPart {
  std::string what;
  double low = 0;
  double high = 0;
};

/// Where four of five runs of a scenario are expected.
struct StepBand {
  double low_step_time_s = 0;
  double high_step_time_s = 0;
  std::vector<BandPart> parts;
};

/// The 80 % band of a prediction from what is known about its inputs; no end-to-end run enters.
///
///   low  = t·(1 - √Σ low_i²),  high = t·(1 + √Σ high_i²)
///
/// over independent inputs i, each with the half width that covers 80 % of its values:
///   sustained clock   r ± 0.03, by simulating again (modelling_runs §2)
///   NIC               bandwidth ± 20 %, by simulating again
///   kernels           of each kind (a residual of the profile): 1.9·m·√Σ w_s², m the median
///                     residual of the fit on rows held out and w_s the shares of the step that the
///                     shapes s of this scenario take; errors of shapes are taken as independent.
///                     1.9 = 1.2816 / 0.6745 leads from the median to 80 % of normal errors.
///
/// Settings that a row leaves open come on top: Widen(). Cost: four simulations.
StepBand EstimateBand(const StepSimulation& simulation, double step_time_s);

/// Other settings are possible too, under which the step takes `step_times_s`: the band reaches as
/// far below the fastest and above the slowest as it did around `scored_s`.
void Widen(const std::vector<double>& step_times_s, double scored_s, StepBand& band);

}  // namespace isthmus::studies
