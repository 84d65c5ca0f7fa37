#pragma once

#include <string>
#include <string_view>

namespace isthmus::profiles {

/// Which values a parameter can have.
struct ParameterRange {
  double min = 0;
  double max = 0;
  bool is_above_min = false;  ///< min itself is not allowed

  bool Holds(double value) const;
};
/// "above 0, at most 1", "0 to 1".
std::string ToText(const ParameterRange& range);

/// By the last word of the key where that says it (`ratio`: a share of a rate; `enabled` and
/// `throttled`: a switch; `factor` of reserved memory: at least 1), else by the unit: rates are
/// above 0, times, bytes and numbers at least 0, and none beyond what integers of picoseconds and
/// bytes can hold.
ParameterRange RangeOf(std::string_view key, std::string_view unit);

}  // namespace isthmus::profiles
