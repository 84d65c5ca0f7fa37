#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/boundary/boundary.h"
#include "plan/boundary/internal/dealing.h"
#include "plan/boundary/internal/intervals.h"
#include "plan/boundary/internal/steps.h"

namespace isthmus::plan {
namespace {

using internal::At;
using internal::Dealing;
using internal::Direction;

/// The sizes of the intervals that `tokens_of` gives for each member.
template <typename TokensOf>
std::vector<std::int64_t> Sizes(const std::vector<base::Rank>& members, TokensOf tokens_of) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(members.size());
  for (const base::Rank member : members) {
    sizes.push_back(tokens_of(member).size());
  }
  return sizes;
}

void FillIntervals(const Dealing& dealing, Boundary& boundary) {
  const int source_cp = dealing.source.size(Axis::kCp);
  for (std::size_t lane = 0; lane < dealing.lane_ranks.size(); ++lane) {
    for (const base::Rank rank : dealing.lane_ranks[lane]) {
      const int slice = dealing.source.Coordinate(rank, Axis::kCp);
      RankBoundary& entry = At(boundary, rank);
      entry.held_forward = internal::Slice(dealing.lane_tokens[lane], slice, source_cp);
      entry.needed_backward = entry.held_forward;
    }
  }
  for (const base::Rank rank : dealing.destination.StageView(0).Ranks()) {
    RankBoundary& entry = At(boundary, rank);
    entry.needed_forward = entry.held_backward = dealing.shard_tokens[dealing.ShardOf(rank)];
  }
}

/// Fan-in: each rank gathers its shard among the ranks at its place in all lanes of the shard.
void AddLaneGathers(const Dealing& dealing, Boundary& boundary) {
  for (const std::vector<std::size_t>& lanes : dealing.LanesByShard()) {
    for (std::size_t index = 0; index < dealing.lane_ranks[lanes.front()].size(); ++index) {
      std::vector<base::Rank> group;
      group.reserve(lanes.size());
      for (const std::size_t lane : lanes) {
        group.push_back(dealing.lane_ranks[lane][index]);
      }
      internal::AddCollective(
          boundary, Direction::kForward, CollectiveKind::kAllGather, group,
          Sizes(group, [&](base::Rank rank) { return dealing.lane_tokens[dealing.LaneOf(rank)]; }));
    }
  }
}

/// Sends every stage-0 rank of the destination its shard, from last-stage ranks of the lanes.
void AddForwardAllToAll(const Dealing& dealing, Boundary& boundary) {
  std::vector<internal::Holder> holders;
  for (const int ordered : dealing.lane_order) {
    const auto lane = static_cast<std::size_t>(ordered);
    holders.push_back({dealing.lane_tokens[lane], dealing.lane_ranks[lane]});
  }
  std::vector<internal::Need> needs;
  for (const base::Rank rank : dealing.destination.StageView(0).Ranks()) {
    needs.push_back(
        {rank, At(boundary, rank).needed_forward, dealing.destination.IndexIn(rank, kTp | kCp)});
  }
  internal::AddAllToAll(boundary, Direction::kForward, holders, needs);
}

void AddForward(const Dealing& dealing, Boundary& boundary) {
  const Grid last_stage = dealing.source.StageView(dealing.source.size(Axis::kPp) - 1);
  for (const std::vector<base::Rank>& group : last_stage.Groups(kCp)) {
    internal::AddCollective(
        boundary, Direction::kForward, CollectiveKind::kAllGather, group,
        Sizes(group, [&](base::Rank rank) { return At(boundary, rank).held_forward; }));
  }
  switch (boundary.boundary_case) {
    case BoundaryCase::kFanIn:
      AddLaneGathers(dealing, boundary);
      break;
    case BoundaryCase::kFanOut:
      for (const base::Rank rank : dealing.destination.StageView(0).Ranks()) {
        internal::AddSelect(At(boundary, rank), Direction::kForward,
                            dealing.lane_tokens[dealing.LaneOf(rank)]);
      }
      break;
    case BoundaryCase::kIrregular:
      AddForwardAllToAll(dealing, boundary);
      break;
    case BoundaryCase::kLocal:
    case BoundaryCase::kEqual:
      break;
  }
}

/// Brings the gradient of each shard from its stage-0 ranks, summed over cp, to all its ranks.
void AddShardGradient(const Dealing& dealing, Boundary& boundary) {
  const Grid first_stage = dealing.destination.StageView(0);
  for (const std::vector<base::Rank>& group : first_stage.Groups(kCp)) {
    internal::AddCollective(
        boundary, Direction::kBackward, CollectiveKind::kAllReduce, group,
        Sizes(group, [&](base::Rank rank) { return At(boundary, rank).held_backward; }));
  }
  for (const std::vector<base::Rank>& group : dealing.destination.Groups(kPp)) {
    std::vector<std::int64_t> tokens(group.size(), 0);
    tokens.front() = dealing.shard_tokens[dealing.ShardOf(group.front())].size();
    internal::AddCollective(boundary, Direction::kBackward, CollectiveKind::kBroadcast, group,
                            tokens);
  }
}

/// Fan-out: gathers a lane's gradient among its siblings, the ranks with the same tp, cp and pp of
/// the destination in all shards of the lane.
void AddSiblingGathers(const Dealing& dealing, Boundary& boundary) {
  for (std::vector<base::Rank>& copies : dealing.destination.Groups(kDp)) {
    std::stable_sort(copies.begin(), copies.end(), [&](base::Rank a, base::Rank b) {
      return dealing.lane_place[dealing.LaneOf(a)] < dealing.lane_place[dealing.LaneOf(b)];
    });
    for (auto begin = copies.begin(); begin != copies.end();) {
      const std::size_t lane = dealing.LaneOf(*begin);
      const auto end = std::find_if(begin, copies.end(),
                                    [&](base::Rank rank) { return dealing.LaneOf(rank) != lane; });
      const std::vector<base::Rank> group(begin, end);
      internal::AddCollective(boundary, Direction::kBackward, CollectiveKind::kAllGather, group,
                              Sizes(group, [&](base::Rank rank) {
                                return dealing.shard_tokens[dealing.ShardOf(rank)];
                              }));
      begin = end;
    }
  }
}

/// Sends every last-stage rank of the source its part of the gradient, from ranks of the shards.
void AddBackwardAllToAll(const Dealing& dealing, Boundary& boundary) {
  std::vector<internal::Holder> holders;
  holders.reserve(dealing.shard_ranks.size());
  for (std::size_t shard = 0; shard < dealing.shard_ranks.size(); ++shard) {
    holders.push_back({dealing.shard_tokens[shard], dealing.shard_ranks[shard]});
  }
  std::vector<internal::Need> needs;
  for (const std::vector<base::Rank>& lane : dealing.lane_ranks) {
    for (const base::Rank rank : lane) {
      needs.push_back(
          {rank, At(boundary, rank).needed_backward, dealing.source.IndexIn(rank, kTp | kCp)});
    }
  }
  internal::AddAllToAll(boundary, Direction::kBackward, holders, needs);
}

void AddBackward(const Dealing& dealing, Boundary& boundary) {
  AddShardGradient(dealing, boundary);
  if (boundary.boundary_case == BoundaryCase::kIrregular) {
    AddBackwardAllToAll(dealing, boundary);
    return;
  }
  const bool fans_out = boundary.boundary_case == BoundaryCase::kFanOut;
  if (fans_out) {
    AddSiblingGathers(dealing, boundary);
  }
  for (const base::Rank rank : dealing.source.Ranks()) {
    const Interval held = fans_out ? dealing.lane_tokens[dealing.LaneOf(rank)]
                                   : dealing.shard_tokens[dealing.ShardOf(rank)];
    internal::AddSelect(At(boundary, rank), Direction::kBackward, held);
  }
}

}  // namespace

Boundary BuildColocatedBoundary(const Grid& source, const Grid& destination,
                                const BoundaryTokens& tokens, int num_ranks) {
  std::vector<base::Rank> source_ranks = source.Ranks();
  std::vector<base::Rank> destination_ranks = destination.Ranks();
  std::sort(source_ranks.begin(), source_ranks.end());
  std::sort(destination_ranks.begin(), destination_ranks.end());
  if (source_ranks != destination_ranks) {
    throw base::Error(fmt::format(
        "colocated modules need the same ranks: the source has {} from rank {} on, the destination "
        "{} from rank {} on",
        source_ranks.size(), source_ranks.front().value(), destination_ranks.size(),
        destination_ranks.front().value()));
  }
  const Dealing dealing(source, destination, tokens);
  const int num_lanes = source.size(kDp);
  const int num_shards = destination.size(kDp);
  Boundary boundary;
  boundary.boundary_case = internal::CaseOf(dealing);
  boundary.colocated = true;
  if (boundary.boundary_case == BoundaryCase::kFanIn) {
    boundary.factor = num_lanes / num_shards;
  } else if (boundary.boundary_case == BoundaryCase::kFanOut) {
    boundary.factor = num_shards / num_lanes;
  }
  boundary.width = tokens.width;
  boundary.tokens_forward = dealing.shard_tokens.back().end;
  boundary.ranks.resize(static_cast<std::size_t>(num_ranks));
  FillIntervals(dealing, boundary);
  AddForward(dealing, boundary);
  AddBackward(dealing, boundary);
  return boundary;
}

}  // namespace isthmus::plan
