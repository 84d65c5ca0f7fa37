#pragma once

#include <vector>

#include "topology/internal/canvas.h"

namespace isthmus::topology::internal {

/// Draws the switches of a custom fabric over the nodes, those with NICs in the lowest row, each
/// other one a row higher than the nearest that leads to NICs.
class CustomDrawing {
 public:
  /// `bottom`: where the nodes begin.
  CustomDrawing(Canvas& canvas, double tier, double bottom);

  int num_rows() const { return static_cast<int>(rows_.size()); }

  /// Rows in the middle between two borders, or beyond the right one where that is too near; joined
  /// to the NICs at the nodes' top.
  void Draw(const std::vector<Spot>& nics, double x, double end);

  /// How many rows there are to draw.
  static int NumRowsOf(const Cluster& cluster);

 private:
  Canvas& canvas_;
  double tier_;
  double bottom_;
  std::vector<std::vector<int>> rows_;  // switches, the lowest row first
};

}  // namespace isthmus::topology::internal
