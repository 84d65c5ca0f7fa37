#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/torch/device/device.h"
#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::backend {

/// Names of kernels as people read them, each kept once.
class KernelNames {
 public:
  /// The number of a name as the profiler gives it (mangled).
  std::uint32_t NumberOf(const std::string& mangled);
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, std::uint32_t> numbers_;  // by mangled name
  std::vector<std::string> texts_;
};

/// Kernels of a rank's step with the Compute or Optimizer ops that launched them, by start.
///
/// Such ops run one after the other on one stream, so a kernel belongs to the op in whose time its
/// middle lies; or, since a profiler's clock and the marks' are some microseconds apart, to the
/// nearest one, if that is not further than kKernelClockSlackPs. Kernels of communication
/// ("nccl…") and others that run between ops are left out. `events` are of the step, by one clock
/// with `kernels`. Cost: O(n log m).
std::vector<traces::KernelRun> AssignKernels(const plan::Role& role,
                                             const std::vector<traces::Event>& events,
                                             const std::vector<KernelRecord>& kernels,
                                             KernelNames& names);

inline constexpr std::int64_t kKernelClockSlackPs = 20'000'000;

}  // namespace isthmus::backend
