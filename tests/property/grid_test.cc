#include "plan/layout/grid.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace isthmus::plan {
namespace {

using base::Rank;

constexpr std::array kAllAxes = {Axis::kTp,      Axis::kCp,        Axis::kEp,
                                 Axis::kDpShard, Axis::kDpReplica, Axis::kPp};

/// The slow oracle: nested loops over the axes, slowest outside, number the ranks one by one.
struct Oracle {
  std::vector<std::map<Axis, int>> coordinates;  // by rank offset

  explicit Oracle(const Layout& layout, int instances) {
    const int shards = layout.dp / instances;
    const auto append = [this](int tp, int cp, int shard, int replica, int pp) {
      coordinates.push_back({{Axis::kTp, tp},
                             {Axis::kCp, cp},
                             {Axis::kEp, 0},
                             {Axis::kDpShard, shard},
                             {Axis::kDpReplica, replica},
                             {Axis::kPp, pp}});
    };
    const auto inner = [&](int shard, int replica, int pp) {
      for (int cp = 0; cp < layout.cp; ++cp) {
        for (int tp = 0; tp < layout.tp; ++tp) {
          append(tp, cp, shard, replica, pp);
        }
      }
    };
    const bool pp_slowest = layout.order == AxisOrder::kTpCpDpPp;
    for (int outer = 0; outer < (pp_slowest ? layout.pp : layout.dp); ++outer) {
      for (int middle = 0; middle < (pp_slowest ? layout.dp : layout.pp); ++middle) {
        const int dp = pp_slowest ? middle : outer;
        inner(dp % shards, dp / shards, pp_slowest ? outer : middle);
      }
    }
  }

  bool SameBut(std::size_t a, std::size_t b, AxisSet axes) const {
    for (const Axis axis : kAllAxes) {
      if (!axes.has(axis) && coordinates[a].at(axis) != coordinates[b].at(axis)) {
        return false;
      }
    }
    return true;
  }
};

AxisSet SetOf(unsigned bits) {
  AxisSet axes;
  for (unsigned axis = 0; axis < kNumAxes; ++axis) {
    if ((bits >> axis & 1U) != 0) {
      axes = axes | AxisSet(static_cast<Axis>(axis));
    }
  }
  return axes;
}

/// Groups of `grid` over `axes` against a scan of all ranks in rank order. Within a group, and
/// among first members, grid order is rank order, since strides grow from the fastest axis on.
void CheckGroups(const Grid& grid, const Oracle& oracle, const std::vector<std::size_t>& inside,
                 AxisSet axes) {
  std::vector<std::vector<Rank>> expected;
  std::vector<bool> seen(oracle.coordinates.size(), false);
  const int first = grid.Ranks().front().value() - static_cast<int>(inside.front());
  const auto rank_at = [first](std::size_t offset) {
    return Rank(first + static_cast<int>(offset));
  };
  for (const std::size_t a : inside) {
    if (seen[a]) {
      continue;
    }
    std::vector<Rank>& members = expected.emplace_back();
    for (const std::size_t b : inside) {
      if (oracle.SameBut(a, b, axes)) {
        seen[b] = true;
        members.push_back(rank_at(b));
      }
    }
  }
  ASSERT_EQ(grid.Groups(axes), expected) << ToText(axes);
  for (std::size_t group = 0; group < expected.size(); ++group) {
    for (std::size_t index = 0; index < expected[group].size(); ++index) {
      const Rank rank = expected[group][index];
      ASSERT_EQ(grid.Group(rank, axes), expected[group]);
      ASSERT_EQ(grid.GroupIndex(rank, axes), static_cast<int>(group));
      ASSERT_EQ(grid.IndexIn(rank, axes), static_cast<int>(index));
    }
  }
}

void CheckGrid(const Layout& layout, int instances) {
  const Oracle oracle(layout, instances);
  const Grid grid(layout, instances);
  ASSERT_EQ(grid.num_ranks(), static_cast<int>(oracle.coordinates.size()));
  std::vector<std::size_t> all;
  for (std::size_t offset = 0; offset < oracle.coordinates.size(); ++offset) {
    all.push_back(offset);
    const Rank rank(layout.first_rank + static_cast<int>(offset));
    ASSERT_TRUE(grid.contains(rank));
    for (const Axis axis : kAllAxes) {
      ASSERT_EQ(grid.Coordinate(rank, axis), oracle.coordinates[offset].at(axis));
    }
  }
  ASSERT_FALSE(grid.contains(Rank(layout.first_rank - 1)));
  ASSERT_FALSE(grid.contains(Rank(layout.first_rank + grid.num_ranks())));
  for (unsigned bits = 0; bits < 1U << kNumAxes; ++bits) {
    CheckGroups(grid, oracle, all, SetOf(bits));
  }
  for (int stage = 0; stage < layout.pp; ++stage) {
    std::vector<std::size_t> inside;
    for (const std::size_t offset : all) {
      const bool on_stage = oracle.coordinates[offset].at(Axis::kPp) == stage;
      ASSERT_EQ(grid.StageView(stage).contains(Rank(layout.first_rank + static_cast<int>(offset))),
                on_stage);
      if (on_stage) {
        inside.push_back(offset);
      }
    }
    CheckGroups(grid.StageView(stage), oracle, inside, kTp | kCp);
    CheckGroups(grid.StageView(stage), oracle, inside, kDp);
    CheckGroups(grid.StageView(stage), oracle, inside, kPp);
  }
}

TEST(GridProperty, AgreesWithNestedLoopsOnEveryLayoutOfSizesOneToThree) {
  for (const AxisOrder order : {AxisOrder::kTpCpDpPp, AxisOrder::kTpCpPpDp}) {
    for (int code = 0; code < 3 * 3 * 3 * 3; ++code) {
      const Layout layout{.tp = 1 + code % 3,
                          .cp = 1 + code / 3 % 3,
                          .pp = 1 + code / 9 % 3,
                          .dp = 2 * (1 + code / 27),
                          .order = order,
                          .first_rank = code};
      for (const int instances : {1, 2, layout.dp}) {
        SCOPED_TRACE(ToText(layout) + " instances " + std::to_string(instances));
        CheckGrid(layout, instances);
        ASSERT_FALSE(::testing::Test::HasFatalFailure());
      }
    }
  }
}

}  // namespace
}  // namespace isthmus::plan
