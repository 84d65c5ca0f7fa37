#pragma once

#include <cstdint>
#include <vector>

#include "plan/program/program.h"
#include "sim/simulate.h"
#include "traces/recorder.h"

/// Predicted and measured traces of one program, and what clocks do to measured ones.
namespace isthmus::tests {

/// The program on two nodes of H100s.
traces::Trace Predict(const plan::Program& program, sim::Folding folding = sim::Folding::kOff);

/// Executed by the fake backend.
traces::Trace MeasureOnFake(const plan::Program& program);

/// A rank's clock: at true time t it shows t + offset_ps + drift · (t - middle of the run).
struct ClockError {
  std::int64_t offset_ps = 0;
  double drift = 0;
};

/// Random offsets of up to `most_offset_ps` either way and drifts up to `most_drift`, by rank.
std::vector<ClockError> RandomClocks(std::uint64_t seed, std::size_t num_ranks,
                                     std::int64_t most_offset_ps, double most_drift);

/// Puts the events of each rank on its own clock. Needs one class per rank.
void SkewClocks(const std::vector<ClockError>& clocks, traces::Trace& trace);

/// How far apart two traces of equal events are at most, but for a shift of all times.
std::int64_t LargestDifference(const traces::Trace& one, const traces::Trace& other);

}  // namespace isthmus::tests
