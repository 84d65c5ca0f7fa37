#pragma once

#include <string_view>
#include <vector>

#include "topology/cluster.h"
#include "topology/internal/picture_parts.h"
#include "topology/internal/svg.h"

namespace isthmus::topology::internal {

inline constexpr std::string_view kGrey = "#5f6368";
inline constexpr std::string_view kRed = "#d32f2f";
inline constexpr std::string_view kSwitchFill = "#e8eaf6";
inline constexpr std::string_view kNicFill = "#fff3cd";
inline constexpr std::string_view kNvlinkFill = "#c8e6c9";
inline constexpr double kGap = 14;
inline constexpr double kMoreWidth = 84;
inline constexpr double kSwitchHeight = 18;

/// The colour of a node group.
std::string_view FillOf(int node_group);

/// A device that has been drawn: its number within its kind, and where its middle is.
struct Spot {
  int number = 0;
  double x = 0;
};

/// Draws links and devices of one cluster, what faults left of them in red.
///
/// Lifetime: the cluster must outlive it.
class Canvas {
 public:
  explicit Canvas(const Cluster& cluster);

  const Cluster& cluster() const { return cluster_; }
  /// The same without faults.
  const Cluster& sound() const { return sound_; }
  Svg& svg() { return svg_; }

  void DrawLink(base::LinkId id, double x1, double y1, double x2, double y2);
  /// The links from the ones to the others, of two layers.
  void Join(DeviceKind lower_kind, const std::vector<Spot>& lower, double lower_y,
            DeviceKind upper_kind, const std::vector<Spot>& upper, double upper_y);
  /// The box that stands for parts that are only counted.
  void DrawMore(const Shown& shown, double x, double y, double width, double height,
                std::string_view what);

 private:
  const Cluster& cluster_;
  const Cluster sound_;
  Svg svg_;
};

}  // namespace isthmus::topology::internal
