// Whatever is written where a quantity belongs, reading it gives a value in range or a message.

#include "base/parse_units.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/random.h"

namespace isthmus::base {
namespace {

constexpr std::array<std::string_view, 12> kGood = {
    "80 GiB", "400 Gbit/s", "1.5 us",    "989.4 TFLOP/s", "1.755 GHz", "700 W",
    "0 B",    "1e3 s",      "3.35 TB/s", "30 days",       "1e18 B",    "8388607 TiB"};

std::string Mutate(RandomStream& random) {
  std::string text(random.Pick(std::span<const std::string_view>(kGood)));
  const std::int64_t num_edits = random.UniformInt(0, 4);
  for (std::int64_t edit = 0; edit < num_edits; ++edit) {
    const auto length = static_cast<std::int64_t>(text.size());
    const auto place = static_cast<std::size_t>(random.UniformInt(0, length));
    constexpr std::string_view kTelling = "0123456789eE+-.,_ \tnaifxKMGTbB/\0µ";
    const char letter = random.Chance(0.2)
                            ? static_cast<char>(random.UniformInt(0, 255))
                            : random.Pick(std::span<const char>(kTelling.data(), kTelling.size()));
    if (random.Chance(0.5)) {
      text.insert(place, 1, letter);
    } else if (place < text.size()) {
      random.Chance(0.5) ? text.erase(place, 1) : text.replace(place, 1, 1, letter);
    }
  }
  return text;
}

template <typename T>
void ExpectValueOrMessage(const Parsed<T>& parsed) {
  EXPECT_NE(parsed.value.has_value(), !parsed.message.empty());
  if (!parsed.value) return;
  double number = 0.0;
  if constexpr (std::is_same_v<T, double>) {
    number = *parsed.value;
  } else {
    number = static_cast<double>(parsed.value->value());
  }
  EXPECT_TRUE(std::isfinite(number));
  EXPECT_GE(number, 0.0);
}

TEST(ParseUnitsFuzz, GivesAValueOrAMessage) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    RandomStream random(seed, "fuzz.units");
    const std::string text = Mutate(random);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << text);
    ExpectValueOrMessage(ParseBytes(text));
    ExpectValueOrMessage(ParseBytesPerSecond(text));
    ExpectValueOrMessage(ParseSeconds(text));
    ExpectValueOrMessage(ParseFlopsPerSecond(text));
    ExpectValueOrMessage(ParseFlops(text));
    ExpectValueOrMessage(ParseHertz(text));
    ExpectValueOrMessage(ParseWatts(text));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace isthmus::base
