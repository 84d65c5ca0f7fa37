#pragma once

#include <chrono>
#include <cstdint>

namespace isthmus::backend {

/// The time of a run: picoseconds since it was made, by the machine's monotonic clock. Thread-safe.
class RunClock {
 public:
  std::int64_t now_ps() const {
    const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - begin_;
    return passed.count() * 1000;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace isthmus::backend
