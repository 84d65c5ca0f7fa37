#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace isthmus::base {

/// What a text with a unit turned out to mean: a value, or what is wrong with it.
///
/// Invariant: `value` is set, or `message` is not empty; `hint` (what to write instead) goes with a
/// message and may be empty.
template <typename T>
struct [[nodiscard]] Parsed {
  std::optional<T> value;
  std::string message;
  std::string hint;
};

// Each takes a number and a unit, with or without blanks between ("80 GiB", "1.5us"). Units are
// case sensitive, since b is a bit and B a byte. k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of
// 1024. Numbers are plain decimals or have an exponent; not negative, finite. A bare number, an
// unknown unit or a value out of range is a message with the allowed units as hint. No locale is
// looked at.

/// "80 GiB". A value that is not a whole number of bytes is rounded, unless the unit is B.
Parsed<Bytes> ParseBytes(std::string_view text);
/// "400 Gbit/s", "400 Gb/s", "400 Gbps" (bits); "450 GB/s", "3.35 TB/s", "50 GiB/s" (bytes).
Parsed<BytesPerSecond> ParseBytesPerSecond(std::string_view text);
/// "1.5 us", "20 ms", "3 min", "2 h", "30 days".
Parsed<Seconds> ParseSeconds(std::string_view text);
/// "989.4 TFLOP/s".
Parsed<FlopsPerSecond> ParseFlopsPerSecond(std::string_view text);
/// "1.2 PFLOP".
Parsed<Flops> ParseFlops(std::string_view text);
/// "1.755 GHz", in hertz.
Parsed<double> ParseHertz(std::string_view text);
/// "700 W", in watts.
Parsed<double> ParseWatts(std::string_view text);

}  // namespace isthmus::base
