#pragma once

#include <optional>
#include <string>

#include "plan/model/kernel.h"
#include "profiles/profile.h"

namespace isthmus::sim {

/// How fast tensor-core kernels run when they run for seconds, against a burst
/// of milliseconds.
///
///     r = sustained rate / burst rate, in (0, 1]
///
/// Kernel tables are measured in bursts; training holds the chip at its power
/// limit, and the whole job runs at the slowest GPU of a node. Throttling
/// belongs to the kernel: products near peak take r, memory-bound kernels and
/// communication take 1. The 16-bit products of an fp8 run take the run's ratio:
/// it is one chip's clock. Source: `clock.<dtype>.ratio` of the profile (marked,
/// with band); fp16 counts as bf16. A data type without the parameter fails
/// when asked for. Derivation: docs/models/clock.md.
class SustainedClock {
 public:
  explicit SustainedClock(const profiles::Profile& profile);

  /// Throws base::Error if the profile has no ratio for the type.
  double Ratio(plan::DType dtype) const;
  double Ratio(const plan::Gemm& gemm) const;
  double Ratio(const plan::Attention& attention) const;

 private:
  std::optional<double> bf16_;
  std::optional<double> fp8_;
  std::string profile_name_;
};

}  // namespace isthmus::sim
