#pragma once

#include "base/units.h"
#include "plan/model/kernel.h"

namespace isthmus::sim {

/// How long a kernel keeps a device busy when it is alone there.
///
/// Two models: KernelModel (what was measured) and RooflineModel (what the data
/// sheet allows, a lower bound of it). Implementations are immutable and
/// thread-safe. An empty kernel takes 0 s. Callers ask once per distinct shape
/// and keep the answer.
class ComputeModel {
 public:
  virtual ~ComputeModel() = default;

  /// Throws base::Error if the profile lacks what the kernel needs.
  virtual base::Seconds Time(const plan::Kernel& kernel) const = 0;

  /// The idle gap in front of the kernel's launches, all together: time the
  /// device waits for launches although the host is ahead. Not part of Time().
  virtual base::Seconds LaunchGap(const plan::Kernel& kernel) const = 0;
};

/// How many times a kernel is launched; 0 if it is empty.
int NumLaunches(const plan::Kernel& kernel);

}  // namespace isthmus::sim
