#include "plan/layout/grid.h"

#include "base/check.h"

namespace isthmus::plan {

Grid::Grid(const Layout& layout, int optimizer_instances) : first_rank_(layout.first_rank) {
  ISTHMUS_CHECK(layout.tp >= 1 && layout.cp >= 1 && layout.pp >= 1 && layout.dp >= 1,
                "degrees of {} must be at least 1", ToText(layout));
  ISTHMUS_CHECK(optimizer_instances >= 1 && layout.dp % optimizer_instances == 0,
                "{} optimizer instances do not divide dp of {}", optimizer_instances,
                ToText(layout));
  ISTHMUS_CHECK(first_rank_ >= 0, "first rank {} is negative", first_rank_);
  const auto set_size = [this](Axis axis, int size) {
    axes_[static_cast<std::size_t>(axis)].size = size;
  };
  set_size(Axis::kTp, layout.tp);
  set_size(Axis::kCp, layout.cp);
  set_size(Axis::kDpShard, layout.dp / optimizer_instances);
  set_size(Axis::kDpReplica, optimizer_instances);
  set_size(Axis::kPp, layout.pp);

  fastest_first_ =
      layout.order == AxisOrder::kTpCpDpPp
          ? std::array{Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDpShard, Axis::kDpReplica, Axis::kPp}
          : std::array{Axis::kTp, Axis::kCp,      Axis::kEp,
                       Axis::kPp, Axis::kDpShard, Axis::kDpReplica};
  int stride = 1;
  for (const Axis axis : fastest_first_) {
    axes_[static_cast<std::size_t>(axis)].stride = stride;
    stride *= extent(axis).size;
  }
}

Grid Grid::StageView(int stage) const {
  ISTHMUS_CHECK(stage >= 0 && stage < size(Axis::kPp), "stage {} of {}", stage, size(Axis::kPp));
  Grid view = *this;
  view.first_rank_ += stage * extent(Axis::kPp).stride;
  view.axes_[static_cast<std::size_t>(Axis::kPp)].size = 1;
  return view;
}

int Grid::num_ranks() const { return size(AxisSet{}.Others()); }

int Grid::size(AxisSet axes) const {
  int product = 1;
  for (const Axis axis : fastest_first_) {
    product *= axes.has(axis) ? extent(axis).size : 1;
  }
  return product;
}

bool Grid::contains(base::Rank rank) const {
  const int offset = rank.value() - first_rank_;
  if (offset < 0) {
    return false;
  }
  // A stage view has holes: a rank is in the grid if its coordinates lead back to it.
  int reached = 0;
  for (const Axis axis : fastest_first_) {
    const Extent& along = extent(axis);
    reached += offset / along.stride % along.size * along.stride;
  }
  return reached == offset;
}

int Grid::Coordinate(base::Rank rank, Axis axis) const {
  ISTHMUS_CHECK(contains(rank), "rank {} is not in the grid", rank.value());
  const int offset = rank.value() - first_rank_;
  return offset / extent(axis).stride % extent(axis).size;
}

int Grid::IndexIn(base::Rank rank, AxisSet axes) const {
  ISTHMUS_CHECK(contains(rank), "rank {} is not in the grid", rank.value());
  const int offset = rank.value() - first_rank_;
  int index = 0;
  int weight = 1;
  for (const Axis axis : fastest_first_) {
    if (axes.has(axis)) {
      index += offset / extent(axis).stride % extent(axis).size * weight;
      weight *= extent(axis).size;
    }
  }
  return index;
}

std::vector<int> Grid::Offsets(AxisSet axes) const {
  std::vector<int> offsets = {0};
  offsets.reserve(static_cast<std::size_t>(size(axes)));
  for (const Axis axis : fastest_first_) {
    if (!axes.has(axis)) {
      continue;
    }
    const std::size_t faster = offsets.size();
    for (int coordinate = 1; coordinate < extent(axis).size; ++coordinate) {
      for (std::size_t index = 0; index < faster; ++index) {
        offsets.push_back(offsets[index] + coordinate * extent(axis).stride);
      }
    }
  }
  return offsets;
}

std::vector<base::Rank> Grid::Group(base::Rank rank, AxisSet axes) const {
  ISTHMUS_CHECK(contains(rank), "rank {} is not in the grid", rank.value());
  const int offset = rank.value() - first_rank_;
  int first = rank.value();
  for (const Axis axis : fastest_first_) {
    if (axes.has(axis)) {
      first -= offset / extent(axis).stride % extent(axis).size * extent(axis).stride;
    }
  }
  std::vector<base::Rank> members;
  members.reserve(static_cast<std::size_t>(size(axes)));
  for (const int distance : Offsets(axes)) {
    members.emplace_back(first + distance);
  }
  return members;
}

std::vector<std::vector<base::Rank>> Grid::Groups(AxisSet axes) const {
  const std::vector<int> inside = Offsets(axes);
  std::vector<std::vector<base::Rank>> groups;
  groups.reserve(static_cast<std::size_t>(size(axes.Others())));
  for (const int first : Offsets(axes.Others())) {
    std::vector<base::Rank>& members = groups.emplace_back();
    members.reserve(inside.size());
    for (const int distance : inside) {
      members.emplace_back(first_rank_ + first + distance);
    }
  }
  return groups;
}

int Grid::GroupIndex(base::Rank rank, AxisSet axes) const { return IndexIn(rank, axes.Others()); }

base::Rank Grid::Neighbour(base::Rank rank, Axis axis, int delta) const {
  const int size_along = extent(axis).size;
  const int from = Coordinate(rank, axis);
  const int to = ((from + delta) % size_along + size_along) % size_along;
  return base::Rank(rank.value() + (to - from) * extent(axis).stride);
}

std::vector<base::Rank> Grid::Ranks() const {
  return Group(base::Rank(first_rank_), AxisSet{}.Others());
}

}  // namespace isthmus::plan
