#include "sim/engine/shared_device.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/sim_time.h"

namespace isthmus::sim {
SharedDevice::SharedDevice(int cores, const std::vector<double>& speeds) : cores_(cores) {
  for (const double speed : speeds) {
    ISTHMUS_CHECK(speed > 0 && speed <= 1, "speed {} of a shared device", speed);
    speeds_.push_back(
        std::max<std::int64_t>(1, std::llround(speed * static_cast<double>(kFullSpeed))));
  }
}

SharedDevice::Rate SharedDevice::RateOf(Pace pace) const {
  const int active = num_active();
  Rate rate{std::min(cores_, active), active};
  if (pace == Pace::kAsStated || speeds_.empty() || active == 0) return rate;
  const std::size_t others = static_cast<std::size_t>(active) - 1;
  rate.numerator *= speeds_[std::min(others, speeds_.size() - 1)];
  rate.denominator *= kFullSpeed;
  return rate;
}

void SharedDevice::Advance(std::int64_t now_ps) {
  ISTHMUS_CHECK(now_ps >= now_ps_, "shared device goes back in time: {} to {}", now_ps_, now_ps);
  const Wide elapsed = Wide{now_ps - now_ps_} * kScale;
  now_ps_ = now_ps;
  for (auto& [number, job] : jobs_) {
    const Rate rate = RateOf(job.pace);
    const Wide done = elapsed * rate.numerator / rate.denominator;
    job.remaining = std::max<Wide>(0, job.remaining - done);
  }
}

void SharedDevice::Start(std::int64_t now_ps, std::uint32_t job, std::int64_t work_ps, Pace pace) {
  Advance(now_ps);
  const bool is_new = jobs_.emplace(job, Job{Wide{work_ps} * kScale, pace}).second;
  ISTHMUS_CHECK(is_new, "job {} runs already on its device", job);
  ++epoch_;
}

std::optional<std::pair<std::int64_t, std::uint32_t>> SharedDevice::NextEnd() const {
  std::optional<std::pair<std::int64_t, std::uint32_t>> next;
  for (const auto& [number, job] : jobs_) {
    const Rate rate = RateOf(job.pace);
    const Wide stretched = (job.remaining * rate.denominator + rate.numerator - 1) / rate.numerator;
    const Wide wait = (stretched + kScale - 1) / kScale;
    // Out of range, the rounding throws.
    const std::int64_t wait_ps = wait <= INT64_MAX
                                     ? static_cast<std::int64_t>(wait)
                                     : base::RoundPicoseconds(static_cast<double>(wait));
    const std::int64_t end = base::Later(
        now_ps_, wait_ps, [] { return std::string("work on the device that ranks share"); });
    if (!next || end < next->first) next.emplace(end, number);
  }
  return next;
}

void SharedDevice::End(std::int64_t now_ps, std::uint32_t job) {
  Advance(now_ps);
  ISTHMUS_CHECK(jobs_.erase(job) == 1, "job {} doesn't run on its device", job);
  ++epoch_;
}

}  // namespace isthmus::sim
