#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/units.h"

namespace isthmus::base {

/// A duration in the simulation: whole picoseconds, so that equal durations are equal.
using Picoseconds = Quantity<struct PicosecondsTag, std::int64_t>;

/// `time` to the nearest picosecond; a positive duration never becomes 0, nor a negative one.
///
/// Throws Error when `time` is not a number or lies outside ±9.2e6 s (106 days), the range of the
/// simulated clock: absurd inputs reach it, not only our mistakes.
Picoseconds ToPicoseconds(Seconds time);

/// What ends it, for errors, and what to do about it.
inline constexpr const char* kClockRange =
    "the simulated clock's range of 106 days\n  hint: look for a rate or a time that no machine "
    "has, or simulate fewer steps (step.num_steps)";

/// A computed number of picoseconds to the nearest whole one. Throws as ToPicoseconds.
std::int64_t RoundPicoseconds(double exact_ps);

namespace internal {
[[noreturn]] void ThrowPastClock(const std::string& what, std::int64_t start_ps,
                                 std::int64_t duration_ps);
}  // namespace internal

/// `duration_ps` after `start_ps`. Throws Error where that lies past the simulated clock's range:
/// sums of durations that are each within it reach that. `name` returns what takes that long, as in
/// "op 3 of rank 7"; it is called only then.
template <typename Name>
std::int64_t Later(std::int64_t start_ps, std::int64_t duration_ps, Name name) {
  std::int64_t later_ps = 0;
  if (__builtin_add_overflow(start_ps, duration_ps, &later_ps)) [[unlikely]]
    internal::ThrowPastClock(name(), start_ps, duration_ps);
  return later_ps;
}

constexpr Seconds ToSeconds(Picoseconds time) {
  return Seconds(static_cast<double>(time.value()) * 1e-12);
}

/// A point on the simulated clock: whole picoseconds since the run began.
///
/// Integer, so ties are ties and are decided by the order of scheduling, never by rounding.
/// Range: 106 days. Points don't add; point - point is a duration.
class SimTime {
 public:
  constexpr SimTime() = default;
  static constexpr SimTime FromPs(std::int64_t ps) { return SimTime(ps); }

  /// Picoseconds since the run began.
  constexpr std::int64_t ps() const { return ps_; }
  constexpr Seconds since_start() const { return ToSeconds(Picoseconds(ps_)); }

  friend constexpr bool operator==(SimTime, SimTime) = default;
  friend constexpr auto operator<=>(SimTime, SimTime) = default;

  constexpr SimTime& operator+=(Picoseconds duration) { return *this = *this + duration; }
  friend constexpr SimTime operator+(SimTime t, Picoseconds d) {
    return SimTime(t.ps_ + d.value());
  }
  friend constexpr SimTime operator-(SimTime t, Picoseconds d) {
    return SimTime(t.ps_ - d.value());
  }
  friend constexpr Picoseconds operator-(SimTime a, SimTime b) {
    return Picoseconds(a.ps_ - b.ps_);
  }
  /// Rounds as ToPicoseconds does.
  friend SimTime operator+(SimTime t, Seconds d) { return t + ToPicoseconds(d); }

 private:
  constexpr explicit SimTime(std::int64_t ps) : ps_(ps) {}

  std::int64_t ps_ = 0;
};

}  // namespace isthmus::base
