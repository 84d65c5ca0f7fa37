#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/program/program.h"
#include "profiles/profile.h"

namespace isthmus::studies {

/// The kernels of one shape on one rank in a step.
struct KernelTime {
  std::string segment;   ///< where in the layer: "fc1 dgrad"
  std::string shape;     ///< "fp8 8192 x 14336 x 4096"
  std::string residual;  ///< key of the profile whose residual speaks for this kind of kernel
  std::int64_t count = 0;
  double seconds = 0;  ///< of all of them, alone on the device at the sustained clock
};

/// What the rank whose kernels take longest computes in a step of `program`, the longest first.
/// Times are those of kernels alone; overlap and reserved SMs come on top.
std::vector<KernelTime> KernelTimes(const plan::Program& program, const profiles::Profile& profile);

}  // namespace isthmus::studies
