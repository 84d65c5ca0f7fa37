#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"

namespace isthmus::base {

/// The number of single-character insertions, deletions, replacements and swaps of neighbours that
/// turn one text into the other. Cost: O(|a|·|b|).
std::size_t EditDistance(std::string_view a, std::string_view b);

/// The candidate that `name` was probably meant to be: the one with the smallest edit distance
/// (case doesn't count), the first of equals; none when even that differs in more than a third of
/// its characters (but one slip is always allowed).
std::optional<std::string> ClosestName(std::string_view name,
                                       std::span<const std::string> candidates);

// For people: about three significant digits and the largest prefix that keeps the number >= 1.
// Results never depend on the locale.

/// Binary prefixes: "12.3 GiB", "512 B".
std::string FormatBytes(Bytes bytes);
/// "7.57 s", "3.20 ms", "15.0 us", "0 s"; from two minutes on "12 min 5 s", "3 h 25 min", "2.5
/// days".
std::string FormatSeconds(Seconds time);
/// Thousands apart: "1,024".
std::string FormatCount(std::int64_t count);
/// How many of a thing: "1 rank", "1,024 ranks".
std::string Counted(std::int64_t count, std::string_view one, std::string_view many);
/// Numbers in the order given, those that follow each other as ranges: "0, 2, 4-7".
std::string FormatRanges(std::span<const int> numbers);
/// Decimal prefixes, bytes: "450 GB/s".
std::string FormatRate(BytesPerSecond rate);
/// "989 TFLOP/s".
std::string FormatRate(FlopsPerSecond rate);
/// "1.20 PFLOP".
std::string FormatFlops(Flops flops);
/// A fraction in per cent with one decimal: 0.375 -> "37.5 %".
std::string FormatFraction(double fraction);

}  // namespace isthmus::base
