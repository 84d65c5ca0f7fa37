#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "plan/layout/axes.h"
#include "plan/layout/layout.h"

namespace isthmus::plan {

/// A Layout laid over concrete ranks: rank = first + Σ coordinate(axis) · stride(axis).
///
/// Same enumeration as Megatron's HyperCommGrid: axes are listed fastest first; the ranks of a
/// group come in grid order (fastest axis first), the groups in order of the remaining axes.
/// A grid need not be contiguous: a *stage view* fixes pp and keeps the strides, which is where a
/// homogeneous encoder lives.
///
/// The ep axis has size 1: experts re-factor the ranks of tp, cp and dp, they don't multiply them.
///
/// Immutable value. Cost: coordinates and members are O(axes) and O(group size).
class Grid {
 public:
  /// The whole grid of `layout`, dp split into `optimizer_instances` replicas of dp/instances
  /// shards. Needs degrees ≥ 1 and instances dividing dp (scenarios checks both).
  Grid(const Layout& layout, int optimizer_instances);

  /// The ranks of pipeline stage `stage` as a grid with pp = 1. Needs 0 ≤ stage < size(Axis::kPp).
  Grid StageView(int stage) const;

  int num_ranks() const;
  int first_rank() const { return first_rank_; }
  int size(Axis axis) const { return axes_[static_cast<std::size_t>(axis)].size; }
  /// Product of the sizes of `axes`.
  int size(AxisSet axes) const;

  bool contains(base::Rank rank) const;
  /// Coordinate along one axis. Needs contains(rank).
  int Coordinate(base::Rank rank, Axis axis) const;
  /// Index among the ranks that differ only in `axes`, in grid order. Needs contains(rank).
  int IndexIn(base::Rank rank, AxisSet axes) const;
  /// Ranks that differ from `rank` only in `axes`, `rank` included, in grid order.
  std::vector<base::Rank> Group(base::Rank rank, AxisSet axes) const;
  /// All groups over `axes`; group index counts the other axes, fastest first.
  std::vector<std::vector<base::Rank>> Groups(AxisSet axes) const;
  /// Index of the group over `axes` that `rank` is in; the order of Groups().
  int GroupIndex(base::Rank rank, AxisSet axes) const;
  /// The rank `delta` steps from `rank` along `axis`, with wrap-around. Needs contains(rank).
  base::Rank Neighbour(base::Rank rank, Axis axis, int delta) const;
  /// All ranks in grid order.
  std::vector<base::Rank> Ranks() const;

 private:
  struct Extent {
    int size = 1;
    int stride = 1;
  };
  Grid() = default;
  const Extent& extent(Axis axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  /// Distances from a group's first rank to its members, in grid order.
  std::vector<int> Offsets(AxisSet axes) const;

  std::array<Extent, kNumAxes> axes_{};
  std::array<Axis, kNumAxes> fastest_first_{};
  int first_rank_ = 0;
};

}  // namespace isthmus::plan
