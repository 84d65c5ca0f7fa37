#include "profiles/parameter_range.h"

#include <fmt/format.h>

namespace isthmus::profiles {

bool ParameterRange::Holds(double value) const {
  return (is_above_min ? value > min : value >= min) && value <= max;
}

std::string ToText(const ParameterRange& range) {
  return range.is_above_min ? fmt::format("above {:g}, at most {:g}", range.min, range.max)
                            : fmt::format("{:g} to {:g}", range.min, range.max);
}

ParameterRange RangeOf(std::string_view key, std::string_view unit) {
  const std::string_view word = key.substr(key.rfind('.') + 1);
  if (word == "ratio") return {.min = 0, .max = 1, .is_above_min = true};
  if (word == "enabled" || word == "throttled") return {.min = 0, .max = 1};
  if (key.starts_with("ledger.") && word.ends_with("factor")) return {.min = 1, .max = 10};
  if (word == "fragmentation" || word == "verdict_margin") return {.min = 0, .max = 0.5};
  if (unit == "FLOP/s" || unit == "B/s") return {.min = 0, .max = 1e24, .is_above_min = true};
  if (unit == "s") return {.min = 0, .max = 3600};
  if (unit == "B") return {.min = 0, .max = 1e15};
  return {.min = 0, .max = 1e12};
}

}  // namespace isthmus::profiles
