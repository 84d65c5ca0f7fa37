#include "base/sim_time.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::base {

Picoseconds ToPicoseconds(Seconds time) {
  // 2^63 is a double exactly, so the comparison admits just what the conversion can hold.
  constexpr double kLimitPs = 9223372036854775808.0;
  const double exact_ps = time.value() * 1e12;
  if (!(std::abs(exact_ps) < kLimitPs)) {
    throw Error(fmt::format(
        "a duration of {} s is outside the simulated clock's range of 106 days\n  hint: look for a "
        "bandwidth, rate or time that is far off",
        time.value()));
  }
  const auto rounded_ps = static_cast<std::int64_t>(std::round(exact_ps));
  if (rounded_ps == 0 && exact_ps != 0.0) return Picoseconds(exact_ps > 0.0 ? 1 : -1);
  return Picoseconds(rounded_ps);
}

}  // namespace isthmus::base
