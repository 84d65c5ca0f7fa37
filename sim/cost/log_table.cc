#include "sim/cost/log_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"

namespace isthmus::sim {
namespace {

// `m64_n256_k64` for the axes m, n, k; nothing if it reads otherwise.
std::optional<std::vector<double>> ParsePoint(std::string_view text,
                                              const std::vector<std::string>& axes) {
  std::vector<double> point;
  for (const std::string& axis : axes) {
    if (!point.empty()) {
      if (!text.starts_with('_')) return std::nullopt;
      text.remove_prefix(1);
    }
    if (!text.starts_with(axis)) return std::nullopt;
    text.remove_prefix(axis.size());
    std::int64_t coordinate = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), coordinate);
    if (error != std::errc() || coordinate <= 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    point.push_back(static_cast<double>(coordinate));
  }
  if (!text.empty()) return std::nullopt;
  return point;
}

using Points = std::map<std::vector<double>, double>;

// The keys below the prefix that are points; others there belong to deeper tables.
Points ReadPoints(const profiles::Profile& profile, const std::string& prefix,
                  const std::vector<std::string>& axes, std::string_view unit) {
  Points points;
  for (const std::string& key : profile.KeysUnder(prefix + ".")) {
    const std::string_view word = std::string_view(key).substr(prefix.size() + 1);
    if (const auto point = ParsePoint(word, axes)) points[*point] = profile.Value(key, unit);
  }
  if (points.empty()) {
    throw base::Error(fmt::format(
        "error: profile {} has no points {}.{}…\n  hint: measure them with `isthmus calibrate`",
        profile.name(), prefix, axes.front()));
  }
  return points;
}

}  // namespace

std::string KeyOfPoint(const std::string& prefix, const std::vector<std::string>& axes,
                       const std::vector<std::int64_t>& point) {
  ISTHMUS_CHECK(axes.size() == point.size(), "{} axes, {} coordinates", axes.size(), point.size());
  std::string key = prefix + ".";
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    key += fmt::format("{}{}{}", axis > 0 ? "_" : "", axes[axis], point[axis]);
  return key;
}

LogTable::LogTable(const profiles::Profile& profile, const std::string& prefix,
                   const std::vector<std::string>& axes, std::string_view unit)
    : coordinates_(axes.size()) {
  const Points points = ReadPoints(profile, prefix, axes, unit);
  std::size_t num_points = 1;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    for (const auto& [point, value] : points) coordinates_[axis].push_back(point[axis]);
    std::ranges::sort(coordinates_[axis]);
    std::vector<double>& values = coordinates_[axis];
    values.erase(std::unique(values.begin(), values.end()), values.end());
    num_points *= coordinates_[axis].size();
  }
  if (num_points != points.size()) {
    throw base::Error(fmt::format("error: profile {}: the points of {} make no grid: {} of {}",
                                  profile.name(), prefix, points.size(), num_points));
  }
  for (const auto& [point, value] : points) {  // in order, the last axis fastest
    if (!(value > 0)) {
      throw base::Error(fmt::format("error: profile {}: a value of {} is {}, needs to be above 0",
                                    profile.name(), prefix, value));
    }
    logs_.push_back(std::log(value));
  }
}

std::size_t LogTable::IndexOf(const std::vector<std::size_t>& cell) const {
  std::size_t index = 0;
  for (std::size_t axis = 0; axis < cell.size(); ++axis)
    index = index * coordinates_[axis].size() + cell[axis];
  return index;
}

double LogTable::At(const std::vector<double>& point) const {
  const std::size_t num_axes = coordinates_.size();
  ISTHMUS_CHECK(point.size() == num_axes, "{} coordinates for {} axes", point.size(), num_axes);
  std::vector<std::size_t> below(num_axes, 0);
  std::vector<double> weight(num_axes, 0);  // of the point above
  for (std::size_t axis = 0; axis < num_axes; ++axis) {
    const std::vector<double>& xs = coordinates_[axis];
    const double x = std::clamp(point[axis], xs.front(), xs.back());
    if (xs.size() == 1) continue;
    const auto above = std::upper_bound(xs.begin() + 1, xs.end() - 1, x);
    below[axis] = static_cast<std::size_t>(above - xs.begin()) - 1;
    const double low = xs[below[axis]];
    weight[axis] = std::log(x / low) / std::log(*above / low);
  }
  double sum = 0;
  for (std::size_t corner = 0; corner < (std::size_t{1} << num_axes); ++corner) {
    double share = 1;
    std::vector<std::size_t> cell = below;
    for (std::size_t axis = 0; axis < num_axes; ++axis) {
      const bool is_above = (corner >> axis & 1U) != 0;
      share *= is_above ? weight[axis] : 1 - weight[axis];
      if (is_above && coordinates_[axis].size() > 1) ++cell[axis];
    }
    if (share > 0) sum += share * logs_[IndexOf(cell)];
  }
  return std::exp(sum);
}

LineTable::LineTable(const profiles::Profile& profile, const std::string& prefix,
                     const std::string& axis, std::string_view unit) {
  for (const auto& [point, value] : ReadPoints(profile, prefix, {axis}, unit)) {
    xs_.push_back(point.front());
    values_.push_back(value);
  }
}

double LineTable::At(double x) const {
  if (x <= xs_.front()) return values_.front();
  if (xs_.size() == 1) return values_.front() * x / xs_.front();
  const auto found = static_cast<std::size_t>(std::ranges::upper_bound(xs_, x) - xs_.begin());
  const std::size_t above = std::min(found, xs_.size() - 1);
  const double weight = (x - xs_[above - 1]) / (xs_[above] - xs_[above - 1]);
  return values_[above - 1] + weight * (values_[above] - values_[above - 1]);
}

}  // namespace isthmus::sim
