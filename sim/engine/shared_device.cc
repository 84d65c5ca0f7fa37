#include "sim/engine/shared_device.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::sim {
namespace {

// Products of work and shares exceed 64 bits for steps of hours.
__extension__ using Wide = __int128;

}  // namespace

void SharedDevice::Advance(std::int64_t now_ps) {
  ISTHMUS_CHECK(now_ps >= now_ps_, "shared device goes back in time: {} to {}", now_ps_, now_ps);
  const Wide elapsed = Wide{now_ps - now_ps_} * kScale;
  now_ps_ = now_ps;
  const int active = num_active();
  if (active == 0) return;
  const Wide done = active <= cores_ ? elapsed : elapsed * cores_ / active;
  for (auto& [job, remaining] : remaining_) {
    remaining = std::max<std::int64_t>(0, remaining - static_cast<std::int64_t>(done));
  }
}

void SharedDevice::Start(std::int64_t now_ps, std::uint32_t job, std::int64_t work_ps) {
  Advance(now_ps);
  const bool is_new = remaining_.emplace(job, work_ps * kScale).second;
  ISTHMUS_CHECK(is_new, "job {} runs already on its device", job);
  ++epoch_;
}

std::optional<std::pair<std::int64_t, std::uint32_t>> SharedDevice::NextEnd() const {
  if (remaining_.empty()) return std::nullopt;
  const auto least =
      std::min_element(remaining_.begin(), remaining_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const Wide stretched = num_active() <= cores_
                             ? Wide{least->second}
                             : (Wide{least->second} * num_active() + cores_ - 1) / cores_;
  const auto wait = static_cast<std::int64_t>((stretched + kScale - 1) / kScale);
  return std::pair{now_ps_ + wait, least->first};
}

void SharedDevice::End(std::int64_t now_ps, std::uint32_t job) {
  Advance(now_ps);
  ISTHMUS_CHECK(remaining_.erase(job) == 1, "job {} doesn't run on its device", job);
  ++epoch_;
}

}  // namespace isthmus::sim
