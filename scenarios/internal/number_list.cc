// Lists of numbers in one value: "0, 2, 4-7".
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "scenarios/internal/archive.h"

namespace isthmus::scenarios::internal {
namespace {

// The whole of `text` as a number; nothing for anything else.
std::optional<int> PlainNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Adds the numbers of "4-7" or "4"; why that can't be done, else.
Failure AddNumbers(std::string_view part, IntegerRange range, std::vector<int>& numbers) {
  const std::size_t dash = std::min(part.find('-'), part.size());
  const std::optional<int> first = PlainNumber(part.substr(0, dash));
  const std::optional<int> last = dash == part.size() ? first : PlainNumber(part.substr(dash + 1));
  if (!first || !last || *last < *first)
    return {fmt::format("{} is no number and no range of them", part), "as in 0, 2, 4-7"};
  if (*first < range.min || *last > range.max)
    return {fmt::format("{} is out of range", part),
            fmt::format("allowed: {} to {}", range.min, range.max)};
  for (int number = *first; number <= *last; ++number) numbers.push_back(number);
  return {};
}

Failure ParseNumbers(const std::string& text, IntegerRange range, std::vector<int>& numbers) {
  std::vector<int> parsed;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    std::string_view part = std::string_view(text).substr(start, comma - start);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    Failure failure = AddNumbers(part, range, parsed);
    if (failure.failed()) return failure;
    start = comma + 1;
  }
  std::vector<int> sorted = parsed;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return {fmt::format("{} is named twice", *twice), "name each once"};
  numbers = std::move(parsed);
  return {};
}

}  // namespace

Scalar NumberListScalar(std::vector<int>& numbers, IntegerRange range) {
  Scalar scalar;
  scalar.type = "numbers, as in 0, 2, 4-7";
  scalar.parse = [&numbers, range](const std::string& text, bool) {
    return ParseNumbers(text, range, numbers);
  };
  scalar.print = [&numbers] {
    return numbers.empty() ? std::nullopt : std::optional(base::FormatRanges(numbers));
  };
  scalar.is_text = true;
  return scalar;
}

}  // namespace isthmus::scenarios::internal
