#include "base/parse_units.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace isthmus::base {
namespace {

struct Unit {
  std::string_view name;
  double factor;
  bool is_shown = true;  // Other spellings of a unit are accepted and not listed.
};

// What one kind of quantity may be written in.
struct UnitTable {
  std::string_view kind;     // "a size", for messages.
  std::string_view example;  // A good value, for hints.
  std::span<const Unit> units;
};

constexpr double kKibi = 1024.0;
constexpr double kMebi = kKibi * kKibi;
constexpr double kGibi = kMebi * kKibi;
constexpr double kTebi = kGibi * kKibi;
constexpr bool kHidden = false;

constexpr Unit kByteUnits[] = {{"B", 1},       {"kB", 1e3},   {"KB", 1e3, kHidden}, {"MB", 1e6},
                               {"GB", 1e9},    {"TB", 1e12},  {"KiB", kKibi},       {"MiB", kMebi},
                               {"GiB", kGibi}, {"TiB", kTebi}};
constexpr Unit kByteRateUnits[] = {{"Mbit/s", 1e6 / 8},
                                   {"Gbit/s", 1e9 / 8},
                                   {"Tbit/s", 1e12 / 8},
                                   {"Mb/s", 1e6 / 8, kHidden},
                                   {"Gb/s", 1e9 / 8, kHidden},
                                   {"Tb/s", 1e12 / 8, kHidden},
                                   {"Mbps", 1e6 / 8, kHidden},
                                   {"Gbps", 1e9 / 8, kHidden},
                                   {"Tbps", 1e12 / 8, kHidden},
                                   {"B/s", 1},
                                   {"kB/s", 1e3},
                                   {"MB/s", 1e6},
                                   {"GB/s", 1e9},
                                   {"TB/s", 1e12},
                                   {"MiB/s", kMebi},
                                   {"GiB/s", kGibi},
                                   {"TiB/s", kTebi},
                                   {"MBps", 1e6, kHidden},
                                   {"GBps", 1e9, kHidden},
                                   {"TBps", 1e12, kHidden}};
constexpr Unit kTimeUnits[] = {
    {"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6, kHidden}, {"ms", 1e-3},
    {"s", 1},      {"min", 60},  {"h", 3600},  {"days", 86400},       {"day", 86400, kHidden}};
constexpr Unit kFlopRateUnits[] = {{"GFLOP/s", 1e9},          {"TFLOP/s", 1e12},
                                   {"PFLOP/s", 1e15},         {"GFLOPS", 1e9, kHidden},
                                   {"TFLOPS", 1e12, kHidden}, {"PFLOPS", 1e15, kHidden}};
constexpr Unit kFlopUnits[] = {
    {"FLOP", 1}, {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}, {"EFLOP", 1e18}};
constexpr Unit kFrequencyUnits[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit kPowerUnits[] = {{"W", 1}, {"kW", 1e3}, {"MW", 1e6}};

std::string AllowedUnits(const UnitTable& table) {
  std::vector<std::string_view> shown;
  for (const Unit& unit : table.units) {
    if (unit.is_shown) shown.push_back(unit.name);
  }
  return fmt::format("write {} with one of {}, as in \"{}\"", table.kind, fmt::join(shown, ", "),
                     table.example);
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

const Unit* FindUnit(const UnitTable& table, std::string_view name) {
  for (const Unit& unit : table.units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

// A number and its unit, apart.
struct Split {
  double number = 0.0;
  const Unit* unit = nullptr;
};

Parsed<Split> Fail(std::string message, std::string hint) {
  return {std::nullopt, std::move(message), std::move(hint)};
}

Parsed<Split> ParseNumberAndUnit(std::string_view text, const UnitTable& table) {
  const std::string_view trimmed = Trim(text);
  double number = 0.0;
  const char* end = trimmed.data() + trimmed.size();
  const auto [rest, error] = std::from_chars(trimmed.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    return Fail(fmt::format("\"{}\" is out of range", trimmed), {});
  }
  if (error != std::errc() || !std::isfinite(number)) {
    return Fail(fmt::format("\"{}\" is not {}", trimmed, table.kind), AllowedUnits(table));
  }
  if (std::signbit(number) && number != 0.0) {
    return Fail(fmt::format("\"{}\" is negative", trimmed), {});
  }
  const std::string_view name = Trim({rest, static_cast<std::size_t>(end - rest)});
  if (name.empty()) {
    return Fail(fmt::format("\"{}\" has no unit", trimmed), AllowedUnits(table));
  }
  const Unit* unit = FindUnit(table, name);
  if (unit == nullptr) {
    return Fail(fmt::format("\"{}\" is not a unit of {}", name, table.kind), AllowedUnits(table));
  }
  return {Split{std::abs(number), unit}, {}, {}};  // No "-0" goes on.
}

template <typename T>
Parsed<T> ParseReal(std::string_view text, const UnitTable& table) {
  const Parsed<Split> split = ParseNumberAndUnit(text, table);
  if (!split.value) return {std::nullopt, split.message, split.hint};
  const double value = split.value->number * split.value->unit->factor;
  if (!std::isfinite(value)) {
    return {std::nullopt, fmt::format("\"{}\" is out of range", Trim(text)), {}};
  }
  return {T(value), {}, {}};
}

constexpr UnitTable kSizes = {"a size", "80 GiB", kByteUnits};
constexpr UnitTable kByteRates = {"a bandwidth", "400 Gbit/s", kByteRateUnits};
constexpr UnitTable kTimes = {"a time", "1.5 us", kTimeUnits};
constexpr UnitTable kFlopRates = {"a FLOP rate", "989.4 TFLOP/s", kFlopRateUnits};
constexpr UnitTable kFlopCounts = {"a FLOP count", "1.2 PFLOP", kFlopUnits};
constexpr UnitTable kFrequencies = {"a frequency", "1.755 GHz", kFrequencyUnits};
constexpr UnitTable kPowers = {"a power", "700 W", kPowerUnits};

}  // namespace

Parsed<Bytes> ParseBytes(std::string_view text) {
  const Parsed<Split> split = ParseNumberAndUnit(text, kSizes);
  if (!split.value) return {std::nullopt, split.message, split.hint};
  const double value = split.value->number * split.value->unit->factor;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(value < kLimit)) {
    return {std::nullopt, fmt::format("\"{}\" is out of range", Trim(text)), {}};
  }
  if (split.value->unit->factor == 1.0 && value != std::floor(value)) {
    return {std::nullopt, fmt::format("\"{}\" is not a whole number of bytes", Trim(text)), {}};
  }
  return {Bytes(std::llround(value)), {}, {}};
}

Parsed<BytesPerSecond> ParseBytesPerSecond(std::string_view text) {
  return ParseReal<BytesPerSecond>(text, kByteRates);
}

Parsed<Seconds> ParseSeconds(std::string_view text) { return ParseReal<Seconds>(text, kTimes); }

Parsed<FlopsPerSecond> ParseFlopsPerSecond(std::string_view text) {
  return ParseReal<FlopsPerSecond>(text, kFlopRates);
}

Parsed<Flops> ParseFlops(std::string_view text) { return ParseReal<Flops>(text, kFlopCounts); }

Parsed<double> ParseHertz(std::string_view text) { return ParseReal<double>(text, kFrequencies); }

Parsed<double> ParseWatts(std::string_view text) { return ParseReal<double>(text, kPowers); }

}  // namespace isthmus::base
