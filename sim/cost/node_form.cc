#include "sim/cost/node_form.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "base/error.h"

namespace isthmus::sim {
namespace {

constexpr double kBytesPerMb = 1e6;

/// The number that a key's part spells, if it does and is at least `least`.
std::optional<std::int64_t> NumberOf(std::string_view text, std::int64_t least) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) return {};
  return number;
}

/// {W, seconds} of `<form>.at.<size>`, ascending.
std::vector<std::pair<double, double>> ReadPoints(const profiles::Profile& profile,
                                                  const std::string& form, double bus_factor) {
  const std::string prefix = form + ".at.";
  std::vector<std::pair<double, double>> points;
  for (const std::string& key : profile.KeysUnder(prefix)) {
    const auto size = NumberOf(std::string_view(key).substr(prefix.size()), 1);
    if (!size) throw base::Error(fmt::format("error: parameter {} does not name a size", key));
    points.emplace_back(static_cast<double>(*size) * bus_factor, profile.Value(key, "s"));
  }
  std::sort(points.begin(), points.end());  // keys sort as text
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].second < points[i - 1].second) {
      throw base::Error(fmt::format(
          "error: parameters {}* of profile {} must grow with the size: a larger one takes less",
          prefix, profile.name()));
    }
  }
  return points;
}

}  // namespace

double NodeForm::Form(double bus_bytes) const {
  return latency + bus_bytes / bandwidth + ramp * std::pow(bus_bytes / kBytesPerMb, ramp_exponent);
}

double NodeForm::Time(double bus_bytes, double share) const {
  const double slower_link = bus_bytes / bandwidth * (1 / share - 1);
  if (points.empty()) return slower_link + Form(bus_bytes);
  const auto above = std::lower_bound(
      points.begin(), points.end(), bus_bytes,
      [](const std::pair<double, double>& point, double bytes) { return point.first < bytes; });
  if (above == points.begin()) return slower_link + std::min(Form(bus_bytes), above->second);
  const auto below = std::prev(above);
  if (above == points.end()) {
    return slower_link + below->second + Form(bus_bytes) - Form(below->first);
  }
  const double weight = (bus_bytes - below->first) / (above->first - below->first);
  return slower_link + below->second + weight * (above->second - below->second);
}

std::map<int, NodeForm> ReadNodeForms(const profiles::Profile& profile, const std::string& kind,
                                      double (*bus_factor)(int num_ranks)) {
  const std::string prefix = "collective.node." + kind + ".";
  std::map<int, NodeForm> forms;
  for (const std::string& key : profile.KeysUnder(prefix)) {
    const std::string_view rest = std::string_view(key).substr(prefix.size());
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos || rest.substr(dot) != ".bandwidth") continue;
    const auto ranks = NumberOf(rest.substr(0, dot), 2);
    if (!ranks || *ranks > 1'000'000) {
      throw base::Error(
          fmt::format("error: parameter {} does not name a number of ranks from 2", key));
    }
    const int n = static_cast<int>(*ranks);
    const std::string form = prefix + std::to_string(n);
    forms[n] = {.latency = profile.Value(form + ".latency", "s"),
                .bandwidth = profile.Value(key, "B/s"),
                .ramp = profile.Value(form + ".ramp", "s"),
                .ramp_exponent = profile.Number(form + ".ramp_exponent"),
                .in_switch = profile.Number(form + ".in_switch") != 0,
                .points = ReadPoints(profile, form, bus_factor(n))};
    if (!(forms[n].bandwidth > 0)) {
      throw base::Error(fmt::format("error: parameter {} must be positive", key));
    }
  }
  if (forms.empty()) {
    throw base::Error(
        fmt::format("error: profile {} has no parameters {}<ranks>.*", profile.name(), prefix));
  }
  return forms;
}

}  // namespace isthmus::sim
