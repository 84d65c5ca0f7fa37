#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/torch/device/device.h"

namespace isthmus::backend {

/// Records the kernels of this process through CUPTI's activity interface.
///
/// One at a time in a process: CUPTI's callbacks have no argument of ours. Times are put on the
/// scale of `now_ps` by a pair of readings taken when they are handed out.
class KernelRecorder {
 public:
  /// Throws base::IoError where CUPTI may not be used (another profiler, no permission).
  explicit KernelRecorder(std::function<std::int64_t()> now_ps);
  ~KernelRecorder();
  KernelRecorder(const KernelRecorder&) = delete;
  KernelRecorder& operator=(const KernelRecorder&) = delete;

  /// Kernels that have ended since the last call, by start.
  std::vector<KernelRecord> Take();

 private:
  std::int64_t OffsetNow() const;

  std::function<std::int64_t()> now_ps_;
};

}  // namespace isthmus::backend
