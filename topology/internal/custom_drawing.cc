#include "topology/internal/custom_drawing.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

namespace isthmus::topology::internal {
namespace {

constexpr double kPitch = 96;
constexpr double kWidth = 84;
constexpr std::size_t kMostInRow = 16;
constexpr std::size_t kLongestName = 14;

std::vector<std::vector<int>> RowsOf(const Cluster& cluster) {
  const int count = cluster.CountOf(DeviceKind::kSwitch);
  const auto ends_of = [&cluster](int number) {
    std::vector<Device> ends;
    for (const base::LinkId id :
         cluster.LinksFrom(cluster.DeviceNumbered(DeviceKind::kSwitch, number))) {
      ends.push_back(cluster.DeviceAt(cluster.LinkAt(id).to));
    }
    return ends;
  };
  std::set<int> left;
  for (int number = 0; number < count; ++number) left.insert(number);
  std::vector<std::vector<int>> rows;
  while (!left.empty()) {
    std::vector<int> row;
    for (const int number : left) {
      const std::vector<Device> ends = ends_of(number);
      const bool is_next = std::ranges::any_of(ends, [&](const Device& end) {
        if (rows.empty()) return end.kind == DeviceKind::kNic;
        return end.kind == DeviceKind::kSwitch &&
               std::ranges::find(rows.back(), end.index) != rows.back().end();
      });
      if (is_next) row.push_back(number);
    }
    if (row.empty()) row.assign(left.begin(), left.end());  // what leads to no NIC
    for (const int number : row) left.erase(number);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

int CustomDrawing::NumRowsOf(const Cluster& cluster) {
  return static_cast<int>(RowsOf(cluster).size());
}

CustomDrawing::CustomDrawing(Canvas& canvas, double tier, double bottom)
    : canvas_(canvas), tier_(tier), bottom_(bottom), rows_(RowsOf(canvas.cluster())) {}

void CustomDrawing::Draw(const std::vector<Spot>& nics, double x, double end) {
  const std::vector<std::string>& names = canvas_.cluster().spec().fabric.custom->switches;
  std::vector<Spot> below = nics;
  DeviceKind kind_below = DeviceKind::kNic;
  double y_below = bottom_ + 4;
  double y = bottom_;
  std::size_t widest = 0;
  for (const std::vector<int>& row : rows_) widest = std::max(widest, row.size());
  end = std::max(end, x + static_cast<double>(std::min(widest, kMostInRow)) * kPitch);
  for (const std::vector<int>& row : rows_) {
    y -= tier_;
    const std::size_t drawn = row.size() > kMostInRow ? kMostInRow - 1 : row.size();
    const std::size_t boxes = std::min(row.size(), kMostInRow);
    double left = std::max(x, (x + end) / 2 - static_cast<double>(boxes) * kPitch / 2);
    std::vector<Spot> spots;
    for (std::size_t index = 0; index < drawn; ++index, left += kPitch) {
      const std::string& name = names[static_cast<std::size_t>(row[index])];
      canvas_.svg().Box(left, y, kWidth, kSwitchHeight, kSwitchFill, {.colour = kGrey}, name);
      const bool is_long = name.size() > kLongestName;
      canvas_.svg().Text(left + kWidth / 2, y + 13, Svg::Anchor::kMiddle,
                         is_long ? name.substr(0, kLongestName - 1) + "…" : name, 10);
      spots.push_back({row[index], left + kWidth / 2});
    }
    if (drawn < row.size()) {
      canvas_.DrawMore({0, static_cast<int>(row.size() - drawn)}, left, y, kWidth, kSwitchHeight,
                       {});
    }
    canvas_.Join(kind_below, below, y_below, DeviceKind::kSwitch, spots, y);
    below = std::move(spots);
    kind_below = DeviceKind::kSwitch;
    y_below = y;
  }
}

}  // namespace isthmus::topology::internal
