#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/boundary/boundary.h"
#include "plan/boundary/internal/intervals.h"
#include "plan/boundary/internal/steps.h"

namespace isthmus::plan {
namespace {

using internal::At;
using internal::Direction;

/// Two grids over the same ranks and who has which tokens of the window.
struct Edge {
  const Grid& source;
  const Grid& destination;
  std::vector<std::vector<base::Rank>> lane_ranks;   // last stage of each source lane
  std::vector<std::vector<base::Rank>> shard_ranks;  // all stages of each destination shard
  std::vector<int> lane_order;                       // lanes in the order of their tokens
  std::vector<int> lane_place;                       // by lane: where it is in that order
  std::vector<Interval> lane_tokens;
  std::vector<Interval> shard_tokens;

  Edge(const Grid& from, const Grid& to, const BoundaryTokens& tokens);
  std::size_t LaneOf(base::Rank rank) const {
    return static_cast<std::size_t>(source.IndexIn(rank, kDp));
  }
  std::size_t ShardOf(base::Rank rank) const {
    return static_cast<std::size_t>(destination.IndexIn(rank, kDp));
  }
  /// Lanes that lie inside a shard, in the order of their tokens.
  std::vector<std::size_t> LanesOf(std::size_t shard) const;
};

Edge::Edge(const Grid& from, const Grid& to, const BoundaryTokens& tokens)
    : source(from),
      destination(to),
      lane_ranks(SourceBoundaryRanks(from)),
      shard_ranks(to.Groups(kDp.Others())) {
  const std::int64_t samples = tokens.samples_per_microbatch * tokens.num_microbatches;
  const std::int64_t window = samples * tokens.tokens_per_sample;
  const int num_shards = destination.size(kDp);
  const int num_lanes = source.size(kDp);
  for (std::int64_t shard = 0; shard < num_shards; ++shard) {
    shard_tokens.push_back({shard * window, (shard + 1) * window});
  }
  // Data is dealt to lanes by the shard that owns their first rank.
  const std::vector<base::Rank> first_ranks = DestinationLeaders(source);
  lane_order.resize(static_cast<std::size_t>(num_lanes));
  std::iota(lane_order.begin(), lane_order.end(), 0);
  std::stable_sort(lane_order.begin(), lane_order.end(), [&](int a, int b) {
    return ShardOf(first_ranks[static_cast<std::size_t>(a)]) <
           ShardOf(first_ranks[static_cast<std::size_t>(b)]);
  });
  const std::vector<Interval> cut = internal::CutAtSpans(tokens, samples * num_shards, num_lanes);
  lane_tokens.resize(cut.size());
  lane_place.resize(cut.size());
  for (std::size_t place = 0; place < cut.size(); ++place) {
    const auto lane = static_cast<std::size_t>(lane_order[place]);
    lane_tokens[lane] = cut[place];
    lane_place[lane] = static_cast<int>(place);
  }
}

std::vector<std::size_t> Edge::LanesOf(std::size_t shard) const {
  std::vector<std::size_t> lanes;
  for (const int lane : lane_order) {
    if (ShardOf(lane_ranks[static_cast<std::size_t>(lane)].front()) == shard) {
      lanes.push_back(static_cast<std::size_t>(lane));
    }
  }
  return lanes;
}

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

/// Fan-in and fan-out are possible when no lane (or no shard) is torn between several of the other
/// side, in ranks as in tokens; then every rank of it can do the same with its own siblings.
BoundaryCase CaseOf(const Edge& edge) {
  if (edge.source.size(Axis::kPp) > 1) {
    return BoundaryCase::kIrregular;
  }
  bool lanes_whole = true;
  for (std::size_t lane = 0; lane < edge.lane_ranks.size(); ++lane) {
    const std::size_t shard = edge.ShardOf(edge.lane_ranks[lane].front());
    lanes_whole = lanes_whole &&
                  internal::Contains(edge.shard_tokens[shard], edge.lane_tokens[lane]) &&
                  std::all_of(edge.lane_ranks[lane].begin(), edge.lane_ranks[lane].end(),
                              [&](base::Rank rank) { return edge.ShardOf(rank) == shard; });
  }
  bool shards_whole = true;
  for (std::size_t shard = 0; shard < edge.shard_ranks.size(); ++shard) {
    const std::size_t lane = edge.LaneOf(edge.shard_ranks[shard].front());
    shards_whole = shards_whole &&
                   internal::Contains(edge.lane_tokens[lane], edge.shard_tokens[shard]) &&
                   std::all_of(edge.shard_ranks[shard].begin(), edge.shard_ranks[shard].end(),
                               [&](base::Rank rank) { return edge.LaneOf(rank) == lane; });
  }
  if (lanes_whole && shards_whole) {
    return BoundaryCase::kEqual;
  }
  if (lanes_whole) {
    return BoundaryCase::kFanIn;
  }
  return shards_whole ? BoundaryCase::kFanOut : BoundaryCase::kIrregular;
}

void FillIntervals(const Edge& edge, Boundary& boundary) {
  const int source_cp = edge.source.size(Axis::kCp);
  for (std::size_t lane = 0; lane < edge.lane_ranks.size(); ++lane) {
    for (const base::Rank rank : edge.lane_ranks[lane]) {
      const int slice = edge.source.Coordinate(rank, Axis::kCp);
      RankBoundary& entry = At(boundary, rank);
      entry.held_forward = internal::Slice(edge.lane_tokens[lane], slice, source_cp);
      entry.needed_backward = entry.held_forward;
    }
  }
  for (const base::Rank rank : edge.destination.StageView(0).Ranks()) {
    RankBoundary& entry = At(boundary, rank);
    entry.needed_forward = entry.held_backward = edge.shard_tokens[edge.ShardOf(rank)];
  }
}

/// Fan-in: each rank gathers its shard among the ranks at its place in all lanes of the shard.
void AddLaneGathers(const Edge& edge, Boundary& boundary) {
  for (std::size_t shard = 0; shard < edge.shard_tokens.size(); ++shard) {
    const std::vector<std::size_t> lanes = edge.LanesOf(shard);
    for (std::size_t index = 0; index < edge.lane_ranks[lanes.front()].size(); ++index) {
      std::vector<base::Rank> group;
      for (const std::size_t lane : lanes) {
        group.push_back(edge.lane_ranks[lane][index]);
      }
      internal::AddCollective(
          boundary, Direction::kForward, CollectiveKind::kAllGather, group,
          Sizes(group, [&](base::Rank rank) { return edge.lane_tokens[edge.LaneOf(rank)]; }));
    }
  }
}

/// Sends every stage-0 rank of the destination its shard, from last-stage ranks of the lanes.
void AddForwardAllToAll(const Edge& edge, Boundary& boundary) {
  std::vector<internal::Holder> holders;
  for (const int ordered : edge.lane_order) {
    const auto lane = static_cast<std::size_t>(ordered);
    holders.push_back({edge.lane_tokens[lane], edge.lane_ranks[lane]});
  }
  std::vector<internal::Need> needs;
  for (const base::Rank rank : edge.destination.StageView(0).Ranks()) {
    needs.push_back(
        {rank, At(boundary, rank).needed_forward, edge.destination.IndexIn(rank, kTp | kCp)});
  }
  internal::AddAllToAll(boundary, Direction::kForward, holders, needs);
}

void AddForward(const Edge& edge, Boundary& boundary) {
  const Grid last_stage = edge.source.StageView(edge.source.size(Axis::kPp) - 1);
  for (const std::vector<base::Rank>& group : last_stage.Groups(kCp)) {
    internal::AddCollective(
        boundary, Direction::kForward, CollectiveKind::kAllGather, group,
        Sizes(group, [&](base::Rank rank) { return At(boundary, rank).held_forward; }));
  }
  switch (boundary.boundary_case) {
    case BoundaryCase::kFanIn:
      AddLaneGathers(edge, boundary);
      break;
    case BoundaryCase::kFanOut:
      for (const base::Rank rank : edge.destination.StageView(0).Ranks()) {
        internal::AddSelect(At(boundary, rank), Direction::kForward,
                            edge.lane_tokens[edge.LaneOf(rank)]);
      }
      break;
    case BoundaryCase::kIrregular:
      AddForwardAllToAll(edge, boundary);
      break;
    case BoundaryCase::kLocal:
    case BoundaryCase::kEqual:
      break;
  }
}

/// Brings the gradient of each shard from its stage-0 ranks, summed over cp, to all its ranks.
void AddShardGradient(const Edge& edge, Boundary& boundary) {
  const Grid first_stage = edge.destination.StageView(0);
  for (const std::vector<base::Rank>& group : first_stage.Groups(kCp)) {
    internal::AddCollective(
        boundary, Direction::kBackward, CollectiveKind::kAllReduce, group,
        Sizes(group, [&](base::Rank rank) { return At(boundary, rank).held_backward; }));
  }
  for (const std::vector<base::Rank>& group : edge.destination.Groups(kPp)) {
    std::vector<std::int64_t> tokens(group.size(), 0);
    tokens.front() = edge.shard_tokens[edge.ShardOf(group.front())].size();
    internal::AddCollective(boundary, Direction::kBackward, CollectiveKind::kBroadcast, group,
                            tokens);
  }
}

/// Fan-out: gathers a lane's gradient among its siblings, the ranks with the same tp, cp and pp of
/// the destination in all shards of the lane.
void AddSiblingGathers(const Edge& edge, Boundary& boundary) {
  for (std::vector<base::Rank>& copies : edge.destination.Groups(kDp)) {
    std::stable_sort(copies.begin(), copies.end(), [&](base::Rank a, base::Rank b) {
      return edge.lane_place[edge.LaneOf(a)] < edge.lane_place[edge.LaneOf(b)];
    });
    for (auto begin = copies.begin(); begin != copies.end();) {
      const std::size_t lane = edge.LaneOf(*begin);
      const auto end = std::find_if(begin, copies.end(),
                                    [&](base::Rank rank) { return edge.LaneOf(rank) != lane; });
      const std::vector<base::Rank> group(begin, end);
      internal::AddCollective(
          boundary, Direction::kBackward, CollectiveKind::kAllGather, group,
          Sizes(group, [&](base::Rank rank) { return edge.shard_tokens[edge.ShardOf(rank)]; }));
      begin = end;
    }
  }
}

/// Sends every last-stage rank of the source its part of the gradient, from ranks of the shards.
void AddBackwardAllToAll(const Edge& edge, Boundary& boundary) {
  std::vector<internal::Holder> holders;
  for (std::size_t shard = 0; shard < edge.shard_ranks.size(); ++shard) {
    holders.push_back({edge.shard_tokens[shard], edge.shard_ranks[shard]});
  }
  std::vector<internal::Need> needs;
  for (const std::vector<base::Rank>& lane : edge.lane_ranks) {
    for (const base::Rank rank : lane) {
      needs.push_back(
          {rank, At(boundary, rank).needed_backward, edge.source.IndexIn(rank, kTp | kCp)});
    }
  }
  internal::AddAllToAll(boundary, Direction::kBackward, holders, needs);
}

void AddBackward(const Edge& edge, Boundary& boundary) {
  AddShardGradient(edge, boundary);
  if (boundary.boundary_case == BoundaryCase::kIrregular) {
    AddBackwardAllToAll(edge, boundary);
    return;
  }
  const bool fans_out = boundary.boundary_case == BoundaryCase::kFanOut;
  if (fans_out) {
    AddSiblingGathers(edge, boundary);
  }
  for (const base::Rank rank : edge.source.Ranks()) {
    const Interval held =
        fans_out ? edge.lane_tokens[edge.LaneOf(rank)] : edge.shard_tokens[edge.ShardOf(rank)];
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
  const Edge edge(source, destination, tokens);
  const int num_lanes = source.size(kDp);
  const int num_shards = destination.size(kDp);
  Boundary boundary;
  boundary.boundary_case = CaseOf(edge);
  boundary.colocated = true;
  if (boundary.boundary_case == BoundaryCase::kFanIn) {
    boundary.factor = num_lanes / num_shards;
  } else if (boundary.boundary_case == BoundaryCase::kFanOut) {
    boundary.factor = num_shards / num_lanes;
  }
  boundary.width = tokens.width;
  boundary.tokens_forward = edge.shard_tokens.back().end;
  boundary.ranks.resize(static_cast<std::size_t>(num_ranks));
  FillIntervals(edge, boundary);
  AddForward(edge, boundary);
  AddBackward(edge, boundary);
  return boundary;
}

}  // namespace isthmus::plan
