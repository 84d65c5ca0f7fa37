#include "plan/boundary/internal/dealing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/boundary/internal/intervals.h"

namespace isthmus::plan::internal {

Dealing::Dealing(const Grid& from, const Grid& to, const BoundaryTokens& tokens)
    : source(from),
      destination(to),
      lane_ranks(SourceBoundaryRanks(from)),
      shard_ranks(to.Groups(kDp.Others())) {
  const int num_lanes = source.size(kDp);
  SpanCut cut = CutAtSpans(tokens, SpansBeforeShards(tokens, destination.size(kDp)), num_lanes);
  shard_tokens = std::move(cut.shards);
  // Data is dealt to lanes by the shard that owns their first rank.
  const std::vector<base::Rank> first_ranks = DestinationLeaders(source);
  lane_order.resize(static_cast<std::size_t>(num_lanes));
  std::iota(lane_order.begin(), lane_order.end(), 0);
  std::stable_sort(lane_order.begin(), lane_order.end(), [&](int a, int b) {
    return ShardOf(first_ranks[static_cast<std::size_t>(a)]) <
           ShardOf(first_ranks[static_cast<std::size_t>(b)]);
  });
  lane_tokens.resize(cut.parts.size());
  lane_place.resize(cut.parts.size());
  for (std::size_t place = 0; place < cut.parts.size(); ++place) {
    const auto lane = static_cast<std::size_t>(lane_order[place]);
    lane_tokens[lane] = cut.parts[place];
    lane_place[lane] = static_cast<int>(place);
  }
}

std::vector<std::vector<std::size_t>> Dealing::LanesByShard() const {
  std::vector<std::vector<std::size_t>> lanes(shard_tokens.size());
  for (const int ordered : lane_order) {
    const auto lane = static_cast<std::size_t>(ordered);
    lanes[ShardOf(lane_ranks[lane].front())].push_back(lane);
  }
  return lanes;
}

BoundaryCase CaseOf(const Dealing& dealing) {
  if (dealing.source.size(Axis::kPp) > 1) {
    return BoundaryCase::kIrregular;
  }
  bool lanes_whole = true;
  for (std::size_t lane = 0; lane < dealing.lane_ranks.size(); ++lane) {
    const std::size_t shard = dealing.ShardOf(dealing.lane_ranks[lane].front());
    lanes_whole = lanes_whole && Contains(dealing.shard_tokens[shard], dealing.lane_tokens[lane]) &&
                  std::all_of(dealing.lane_ranks[lane].begin(), dealing.lane_ranks[lane].end(),
                              [&](base::Rank rank) { return dealing.ShardOf(rank) == shard; });
  }
  bool shards_whole = true;
  for (std::size_t shard = 0; shard < dealing.shard_ranks.size(); ++shard) {
    const std::size_t lane = dealing.LaneOf(dealing.shard_ranks[shard].front());
    shards_whole = shards_whole &&
                   Contains(dealing.lane_tokens[lane], dealing.shard_tokens[shard]) &&
                   std::all_of(dealing.shard_ranks[shard].begin(), dealing.shard_ranks[shard].end(),
                               [&](base::Rank rank) { return dealing.LaneOf(rank) == lane; });
  }
  if (lanes_whole && shards_whole) {
    return BoundaryCase::kEqual;
  }
  if (lanes_whole) {
    return BoundaryCase::kFanIn;
  }
  return shards_whole ? BoundaryCase::kFanOut : BoundaryCase::kIrregular;
}

}  // namespace isthmus::plan::internal
