#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiles/profile.h"

namespace isthmus::sim {

/// Positive values on a grid of positive coordinates, interpolated between them in logarithms:
///
///     log v(x) = multilinear in log x₁ … log xₙ
///
/// so a power law is met exactly. Outside of the grid a coordinate counts as the nearest that is
/// there. Read from the parameters `prefix.<point>` of a profile, `<point>` being the axes' letters
/// with their coordinates: `cpu.gemm.fp32.m64_n256_k64`. Thread-safe: immutable. Cost: O(2ⁿ + axes'
/// lengths).
class LogTable {
 public:
  /// Throws base::Error if no such parameter is there, one isn't of the grid, or the grid has gaps.
  LogTable(const profiles::Profile& profile, const std::string& prefix,
           const std::vector<std::string>& axes, std::string_view unit);

  /// One coordinate for each axis, each above 0.
  double At(const std::vector<double>& point) const;
  const std::vector<double>& Coordinates(std::size_t axis) const { return coordinates_[axis]; }

 private:
  std::size_t IndexOf(const std::vector<std::size_t>& cell) const;

  std::vector<std::vector<double>> coordinates_;  // by axis, ascending
  std::vector<double> logs_;                      // the last axis runs fastest
};

/// The key of a grid's point: `prefix.m64_n256_k64`.
std::string KeyOfPoint(const std::string& prefix, const std::vector<std::string>& axes,
                       const std::vector<std::int64_t>& point);

/// Values by one coordinate, in straight lines between points: times by size. Below the first point
/// its value, beyond the last the line through the last two goes on: what a message costs whatever
/// its size does not grow with it. A single point: in proportion to the coordinate.
class LineTable {
 public:
  /// As LogTable, of one axis.
  LineTable(const profiles::Profile& profile, const std::string& prefix, const std::string& axis,
            std::string_view unit);
  double At(double x) const;

 private:
  std::vector<double> xs_;
  std::vector<double> values_;
};

}  // namespace isthmus::sim
