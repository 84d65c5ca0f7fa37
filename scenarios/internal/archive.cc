#include "scenarios/internal/archive.h"

#include <charconv>
#include <cmath>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "base/parse_units.h"
#include "scenarios/internal/diagnostics.h"

namespace isthmus::scenarios::internal {
namespace {

// Digits may be grouped by underscores: 1_000_000.
std::string WithoutUnderscores(const std::string& text) {
  std::string digits;
  for (const char symbol : text) {
    if (symbol != '_') digits += symbol;
  }
  return digits;
}

Failure ParseInteger(const std::string& text, bool is_quoted, IntegerRange range,
                     std::int64_t& value) {
  const std::string digits = WithoutUnderscores(text);
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  const std::string allowed = fmt::format("allowed: {} to {}", range.min, range.max);
  if (error == std::errc::result_out_of_range && rest == end) {
    return {fmt::format("{} is out of range", text), allowed};
  }
  if (is_quoted || error != std::errc() || rest != end) {
    return {fmt::format("\"{}\" is not a whole number", text), allowed};
  }
  if (value < range.min || value > range.max) {
    return {fmt::format("{} is out of range", value), allowed};
  }
  return {};
}

Failure ParseReal(const std::string& text, bool is_quoted, double min, double max, double& value) {
  const std::string digits = WithoutUnderscores(text);
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  const std::string allowed = fmt::format("allowed: {} to {}", min, max);
  if (is_quoted || error != std::errc() || rest != end || !std::isfinite(value)) {
    return {fmt::format("\"{}\" is not a number", text), allowed};
  }
  if (value < min || value > max) return {fmt::format("{} is out of range", value), allowed};
  return {};
}

// A quantity in the unit that gives the shortest text among those that read back as the same value.
template <typename T, typename Parse>
std::string PrintQuantity(T value, std::span<const std::pair<const char*, double>> units,
                          Parse parse) {
  std::string best;
  for (const auto& [name, factor] : units) {
    // Fifteen digits drop the noise of the division; where they lose the value, all are printed.
    for (const std::string& number : {fmt::format("{:.15g}", value.value() / factor),
                                      fmt::format("{}", value.value() / factor)}) {
      std::string text = fmt::format("{} {}", number, name);
      if (!best.empty() && text.size() >= best.size()) continue;
      if (parse(text).value == value) best = std::move(text);
    }
  }
  return best;
}

constexpr std::pair<const char*, double> kBandwidths[] = {
    {"GB/s", 1e9}, {"TB/s", 1e12}, {"MB/s", 1e6}, {"B/s", 1.0}};
constexpr std::pair<const char*, double> kTimes[] = {
    {"us", 1e-6}, {"ns", 1e-9}, {"ms", 1e-3}, {"s", 1.0}};

template <typename T>
Failure TakeQuantity(const base::Parsed<T>& parsed, T& value) {
  if (!parsed.value) return {parsed.message, parsed.hint};
  value = *parsed.value;
  return {};
}

}  // namespace

Scalar IntegerScalar(std::function<void(std::int64_t)> set,
                     std::function<std::optional<std::int64_t>()> get, IntegerRange range) {
  Scalar scalar;
  scalar.type = fmt::format("integer, {} to {}", range.min, range.max);
  scalar.parse = [set = std::move(set), range](const std::string& text, bool is_quoted) {
    std::int64_t value = 0;
    Failure failure = ParseInteger(text, is_quoted, range, value);
    if (!failure.failed()) set(value);
    return failure;
  };
  scalar.print = [get = std::move(get)]() -> std::optional<std::string> {
    const auto value = get();
    return value ? std::optional(fmt::format("{}", *value)) : std::nullopt;
  };
  return scalar;
}

Scalar RealScalar(std::function<void(double)> set, std::function<std::optional<double>()> get,
                  double min, double max) {
  Scalar scalar;
  scalar.type = fmt::format("number, {} to {}", min, max);
  scalar.parse = [set = std::move(set), min, max](const std::string& text, bool is_quoted) {
    double value = 0.0;
    Failure failure = ParseReal(text, is_quoted, min, max, value);
    if (!failure.failed()) set(value);
    return failure;
  };
  scalar.print = [get = std::move(get)]() -> std::optional<std::string> {
    const auto value = get();
    return value ? std::optional(fmt::format("{}", *value)) : std::nullopt;
  };
  return scalar;
}

Scalar BoolScalar(bool& value) {
  Scalar scalar;
  scalar.type = "true or false";
  scalar.parse = [&value](const std::string& text, bool is_quoted) -> Failure {
    if (is_quoted || (text != "true" && text != "false")) {
      return {fmt::format("\"{}\" is neither true nor false", text), "allowed: true, false"};
    }
    value = text == "true";
    return {};
  };
  scalar.print = [&value] { return std::optional<std::string>(value ? "true" : "false"); };
  return scalar;
}

Scalar TextScalar(std::string& text) {
  Scalar scalar;
  scalar.type = "text";
  scalar.is_text = true;
  scalar.parse = [&text](const std::string& read, bool) -> Failure {
    text = read;
    return {};
  };
  scalar.print = [&text] { return text.empty() ? std::nullopt : std::optional(text); };
  return scalar;
}

Scalar WordScalar(std::function<void(int)> set, std::function<int()> get, std::vector<Word> words) {
  std::vector<std::string> allowed;
  for (const Word& word : words) {
    if (word.not_built.empty()) allowed.emplace_back(word.text);
  }
  Scalar scalar;
  scalar.type = fmt::format("{}", fmt::join(allowed, ", "));
  scalar.print = [get = std::move(get), words]() -> std::optional<std::string> {
    for (const Word& word : words) {
      if (word.not_built.empty() && word.value == get()) return std::string(word.text);
    }
    return std::nullopt;
  };
  scalar.parse = [set = std::move(set), words = std::move(words), allowed](const std::string& text,
                                                                           bool) -> Failure {
    for (const Word& word : words) {
      if (word.text != text) continue;
      if (!word.not_built.empty()) {
        return {fmt::format("{} is known but not built yet: {}", text, word.not_built),
                fmt::format("allowed today: {}", fmt::join(allowed, ", "))};
      }
      set(word.value);
      return {};
    }
    return {fmt::format("unknown value \"{}\"", text), NamesHint(text, allowed)};
  };
  return scalar;
}

Scalar BandwidthScalar(base::BytesPerSecond& value) {
  Scalar scalar;
  scalar.type = "bandwidth per direction, as in 450 GB/s or 400 Gbit/s";
  scalar.parse = [&value](const std::string& text, bool) {
    return TakeQuantity(base::ParseBytesPerSecond(text), value);
  };
  scalar.print = [&value] {
    return std::optional(PrintQuantity(value, std::span(kBandwidths), base::ParseBytesPerSecond));
  };
  return scalar;
}

Scalar TimeScalar(base::Seconds& value) {
  Scalar scalar;
  scalar.type = "time, as in 1.5 us";
  scalar.parse = [&value](const std::string& text, bool) {
    return TakeQuantity(base::ParseSeconds(text), value);
  };
  scalar.print = [&value] {
    return std::optional(PrintQuantity(value, std::span(kTimes), base::ParseSeconds));
  };
  return scalar;
}

}  // namespace isthmus::scenarios::internal
