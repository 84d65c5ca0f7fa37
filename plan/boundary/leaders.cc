#include "plan/boundary/boundary.h"

namespace isthmus::plan {
namespace {

/// All ranks of each dp index; within a lane fastest axis first, so stage 0 and tp 0 come first.
std::vector<std::vector<base::Rank>> Lanes(const Grid& grid) { return grid.Groups(kDp.Others()); }

}  // namespace

std::vector<base::Rank> SourceLeaders(const Grid& grid) {
  std::vector<base::Rank> leaders;
  for (const std::vector<base::Rank>& lane : Lanes(grid)) {
    leaders.push_back(lane.back());
  }
  return leaders;
}

std::vector<base::Rank> DestinationLeaders(const Grid& grid) {
  std::vector<base::Rank> leaders;
  for (const std::vector<base::Rank>& lane : Lanes(grid)) {
    leaders.push_back(lane.front());
  }
  return leaders;
}

std::vector<std::vector<base::Rank>> SourceBoundaryRanks(const Grid& grid) {
  return Lanes(grid.StageView(grid.size(Axis::kPp) - 1));
}

std::vector<std::vector<base::Rank>> DestinationBoundaryRanks(const Grid& grid) {
  return Lanes(grid.StageView(0));
}

}  // namespace isthmus::plan
