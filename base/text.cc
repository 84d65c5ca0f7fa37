#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace isthmus::base {
namespace {

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Three significant digits without an exponent: 1.23, 12.3, 123, 1230.
std::string ThreeDigits(double value) {
  const double magnitude = std::abs(value);
  // The borders lie where rounding to the next precision would add a digit.
  const int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

// `value` with the largest prefix whose factor it reaches, rounding included.
std::string WithPrefix(double value, double base, std::span<const char* const> prefixes,
                       std::string_view unit) {
  std::size_t prefix_index = 0;
  while (prefix_index + 1 < prefixes.size() && std::abs(value) >= base - 0.5) {
    value /= base;
    ++prefix_index;
  }
  return fmt::format("{} {}{}", ThreeDigits(value), prefixes[prefix_index], unit);
}

constexpr std::array<const char*, 7> kDecimal = {"", "k", "M", "G", "T", "P", "E"};
constexpr std::array<const char*, 6> kBinary = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};

// Durations of two minutes and more, to the two largest parts.
std::string FormatLongDuration(double seconds) {
  constexpr double kHour = 3600.0;
  constexpr double kDay = 24.0 * kHour;
  if (seconds >= 2.0 * kDay) return fmt::format("{} days", ThreeDigits(seconds / kDay));
  const auto whole = std::llround(seconds);
  if (seconds >= kHour) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace

std::size_t EditDistance(std::string_view a, std::string_view b) {
  // Optimal string alignment by rows; two rows back for swaps.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t column = 0; column <= b.size(); ++column) previous[column] = column;
  for (std::size_t row = 1; row <= a.size(); ++row) {
    current[0] = row;
    for (std::size_t column = 1; column <= b.size(); ++column) {
      const std::size_t cost = a[row - 1] == b[column - 1] ? 0 : 1;
      current[column] =
          std::min({previous[column] + 1, current[column - 1] + 1, previous[column - 1] + cost});
      if (row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1]) {
        current[column] = std::min(current[column], before[column - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::optional<std::string> ClosestName(std::string_view name,
                                       std::span<const std::string> candidates) {
  const std::string wanted = ToLower(name);
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(wanted, ToLower(candidate));
    const std::size_t allowed = std::max<std::size_t>(1, candidate.size() / 3);
    if (distance > allowed || (best && distance >= best_distance)) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string FormatBytes(Bytes bytes) {
  if (std::abs(static_cast<double>(bytes.value())) < 1024.0) {
    return fmt::format("{} B", bytes.value());
  }
  return WithPrefix(static_cast<double>(bytes.value()), 1024.0, kBinary, "B");
}

std::string FormatSeconds(Seconds time) {
  const double seconds = time.value();
  const double magnitude = std::abs(seconds);
  if (seconds == 0.0) return "0 s";
  if (magnitude >= 119.5) {
    return (seconds < 0 ? "-" : "") + FormatLongDuration(magnitude);
  }
  // Each border lies where three digits of the smaller unit would print as 1000.
  if (magnitude >= 0.9995) return ThreeDigits(seconds) + " s";
  if (magnitude >= 0.9995e-3) return ThreeDigits(seconds * 1e3) + " ms";
  if (magnitude >= 0.9995e-6) return ThreeDigits(seconds * 1e6) + " us";
  if (magnitude >= 0.9995e-9) return ThreeDigits(seconds * 1e9) + " ns";
  return ThreeDigits(seconds * 1e12) + " ps";
}

std::string FormatCount(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t end = digits.size(); end > first + 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string Counted(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", FormatCount(count), count == 1 ? one : many);
}

std::string FormatRanges(std::span<const int> numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", first == 0 ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return text;
}

std::string FormatRate(BytesPerSecond rate) {
  return WithPrefix(rate.value(), 1000.0, kDecimal, "B/s");
}

std::string FormatRate(FlopsPerSecond rate) {
  return WithPrefix(rate.value(), 1000.0, kDecimal, "FLOP/s");
}

std::string FormatFlops(Flops flops) { return WithPrefix(flops.value(), 1000.0, kDecimal, "FLOP"); }

std::string FormatFraction(double fraction) { return fmt::format("{:.1f} %", fraction * 100.0); }

}  // namespace isthmus::base
