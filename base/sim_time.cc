#include "base/sim_time.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::base {
namespace {

void CheckRange(double exact_ps, double seconds) {
  // 2^63 is a double exactly, so the comparison admits just what the conversion can hold.
  constexpr double kLimitPs = 9223372036854775808.0;
  if (std::abs(exact_ps) < kLimitPs) return;
  throw Error(fmt::format("a duration of {} s is outside {}", seconds, kClockRange));
}

}  // namespace

void internal::ThrowPastClock(const std::string& what, std::int64_t start_ps,
                              std::int64_t duration_ps) {
  throw Error(fmt::format("{} takes {:.4g} s from {:.4g} s on, past {}", what,
                          ToSeconds(Picoseconds(duration_ps)).value(),
                          ToSeconds(Picoseconds(start_ps)).value(), kClockRange));
}

std::int64_t RoundPicoseconds(double exact_ps) {
  CheckRange(exact_ps, exact_ps * 1e-12);
  return std::llround(exact_ps);
}

Picoseconds ToPicoseconds(Seconds time) {
  const double exact_ps = time.value() * 1e12;
  CheckRange(exact_ps, time.value());
  const auto rounded_ps = static_cast<std::int64_t>(std::round(exact_ps));
  if (rounded_ps == 0 && exact_ps != 0.0) return Picoseconds(exact_ps > 0.0 ? 1 : -1);
  return Picoseconds(rounded_ps);
}

}  // namespace isthmus::base
