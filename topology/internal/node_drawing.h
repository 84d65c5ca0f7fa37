#pragma once

#include <vector>

#include "topology/internal/canvas.h"
#include "topology/internal/picture_parts.h"

namespace isthmus::topology::internal {

/// Draws the nodes of leaf groups, side by side, their tops at a given height.
///
/// Lifetime: what it is made of must outlive it.
class NodeDrawing {
 public:
  NodeDrawing(Canvas& canvas, const TouchedParts& touched, double top)
      : canvas_(canvas), touched_(touched), top_(top) {}

  /// From x to the right. Returns where the nodes end.
  double DrawNodesOf(const LeafGroupPart& part, double x);

  /// The NICs of the nodes that the last call drew, at the top of these.
  const std::vector<Spot>& nics() const { return nics_; }
  /// How far down it has drawn.
  double bottom() const { return bottom_; }

 private:
  const NodeGroup& GroupOf(const LeafGroupPart& part) const;
  int FirstGpuOf(const LeafGroupPart& part, int node) const;
  std::vector<base::DeviceId> SwitchesOf(const LeafGroupPart& part, int node) const;
  double DrawRun(const LeafGroupPart& part, int first, int count, double x, double bar_y);
  double DrawDomains(const LeafGroupPart& part, double x);
  double DrawNode(const LeafGroupPart& part, int node, double x, double bar_y);
  void DrawGpu(base::DeviceId gpu, double x, double y, double bar_y);
  void DrawNic(base::DeviceId nic, int index, double x, double pitch);
  void Label(double x, double y, const std::string& text);

  Canvas& canvas_;
  const TouchedParts& touched_;
  double top_;
  std::vector<Spot> nics_;
  double bottom_ = 0;
};

}  // namespace isthmus::topology::internal
