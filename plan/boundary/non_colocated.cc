#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/boundary/boundary.h"
#include "plan/boundary/internal/intervals.h"
#include "plan/boundary/internal/steps.h"

namespace isthmus::plan {
namespace {

using internal::At;
using internal::Direction;

/// One data lane of a module: who leads it, its ranks at the boundary, its tokens of a microbatch.
struct Lane {
  base::Rank leader;
  std::vector<base::Rank> ranks;  // boundary ranks, the leader first
  Interval tokens;
};

std::vector<Lane> MakeLanes(const std::vector<base::Rank>& leaders,
                            const std::vector<std::vector<base::Rank>>& boundary_ranks,
                            const std::vector<Interval>& tokens) {
  std::vector<Lane> lanes;
  for (std::size_t index = 0; index < leaders.size(); ++index) {
    Lane lane{leaders[index], boundary_ranks[index], tokens[index]};
    const auto leader = std::find(lane.ranks.begin(), lane.ranks.end(), lane.leader);
    std::rotate(lane.ranks.begin(), leader, leader + 1);
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

BoundaryCase CaseOf(int num_lanes, int num_shards) {
  if (num_lanes == num_shards) {
    return BoundaryCase::kEqual;
  }
  if (num_lanes % num_shards == 0) {
    return BoundaryCase::kFanIn;
  }
  return num_shards % num_lanes == 0 ? BoundaryCase::kFanOut : BoundaryCase::kIrregular;
}

void FillIntervals(const Grid& source, const std::vector<Lane>& lanes,
                   const std::vector<Lane>& shards, Boundary& boundary) {
  for (const Lane& lane : lanes) {
    At(boundary, lane.leader).source_leader = true;
    for (const base::Rank rank : lane.ranks) {
      RankBoundary& entry = At(boundary, rank);
      entry.held_forward =
          internal::Slice(lane.tokens, source.Coordinate(rank, Axis::kCp), source.size(Axis::kCp));
      entry.needed_backward = entry.held_forward;
    }
  }
  for (const Lane& shard : shards) {
    At(boundary, shard.leader).destination_leader = true;
    for (const base::Rank rank : shard.ranks) {
      At(boundary, rank).needed_forward = At(boundary, rank).held_backward = shard.tokens;
    }
  }
}

/// Lanes and shards that exchange a message: by index, lanes first.
using Pairs = std::set<std::pair<std::size_t, std::size_t>>;

/// Adds those whose tokens overlap.
void AddPairs(const internal::SpanCut& cut, Pairs& pairs) {
  for (std::size_t lane = 0; lane < cut.parts.size(); ++lane) {
    for (std::size_t shard = 0; shard < cut.shards.size(); ++shard) {
      if (!internal::Intersect(cut.parts[lane], cut.shards[shard]).empty())
        pairs.emplace(lane, shard);
    }
  }
}

/// Messages between leaders, both ways.
void AddMessages(const std::vector<Lane>& lanes, const std::vector<Lane>& shards,
                 const Pairs& pairs, Boundary& boundary) {
  for (const auto& [lane_index, shard_index] : pairs) {
    const Lane& lane = lanes[lane_index];
    const Lane& shard = shards[shard_index];
    const Interval common = internal::Intersect(lane.tokens, shard.tokens);
    At(boundary, lane.leader).sends_forward.push_back({shard.leader, common});
    At(boundary, shard.leader).receives_forward.push_back({lane.leader, common});
    At(boundary, shard.leader).sends_backward.push_back({lane.leader, common});
    At(boundary, lane.leader).receives_backward.push_back({shard.leader, common});
  }
}

void AddTransfers(const std::vector<Lane>& lanes, Direction direction, Boundary& boundary) {
  for (const Lane& lane : lanes) {
    RankBoundary& leader = At(boundary, lane.leader);
    if (leader.sends_forward.empty() && leader.receives_forward.empty()) continue;
    auto& steps = direction == Direction::kForward ? leader.forward : leader.backward;
    steps.push_back({.kind = BoundaryStep::Kind::kTransfers, .tokens = lane.tokens.size()});
  }
}

void AddBroadcasts(const std::vector<Lane>& lanes, Direction direction, Boundary& boundary) {
  for (const Lane& lane : lanes) {
    std::vector<std::int64_t> tokens(lane.ranks.size(), 0);
    tokens.front() = lane.tokens.size();
    internal::AddCollective(boundary, direction, CollectiveKind::kBroadcast, lane.ranks, tokens);
  }
}

void AddForward(const Grid& source, const std::vector<Lane>& lanes, const std::vector<Lane>& shards,
                Boundary& boundary) {
  // Only the leader sends, so only its cp group gathers.
  for (const Lane& lane : lanes) {
    const std::vector<base::Rank> group = source.Group(lane.leader, kCp);
    std::vector<std::int64_t> tokens;
    tokens.reserve(group.size());
    for (const base::Rank rank : group) {
      tokens.push_back(At(boundary, rank).held_forward.size());
    }
    internal::AddCollective(boundary, Direction::kForward, CollectiveKind::kAllGather, group,
                            tokens);
  }
  AddTransfers(lanes, Direction::kForward, boundary);
  AddTransfers(shards, Direction::kForward, boundary);
  AddBroadcasts(shards, Direction::kForward, boundary);
}

void AddBackward(const Grid& destination, const std::vector<Lane>& lanes,
                 const std::vector<Lane>& shards, Boundary& boundary) {
  for (const Lane& shard : shards) {
    const std::vector<base::Rank> group = destination.Group(shard.leader, kCp);
    internal::AddCollective(boundary, Direction::kBackward, CollectiveKind::kReduce, group,
                            std::vector<std::int64_t>(group.size(), shard.tokens.size()));
  }
  AddTransfers(shards, Direction::kBackward, boundary);
  AddTransfers(lanes, Direction::kBackward, boundary);
  AddBroadcasts(lanes, Direction::kBackward, boundary);
  for (const Lane& lane : lanes) {
    for (const base::Rank rank : lane.ranks) {
      internal::AddSelect(At(boundary, rank), Direction::kBackward, lane.tokens);
    }
  }
}

/// What a boundary of this placement is built from; the same for all its microbatches.
struct Sides {
  const Grid& source;
  const Grid& destination;
  Pairs pairs;
};

/// What all ranks have to do in a microbatch that is cut like this.
std::vector<RankBoundary> MakeTable(const Sides& sides, const internal::SpanCut& cut,
                                    int num_ranks) {
  const std::vector<Lane> lanes =
      MakeLanes(SourceLeaders(sides.source), SourceBoundaryRanks(sides.source), cut.parts);
  const std::vector<Lane> shards =
      MakeLanes(DestinationLeaders(sides.destination), DestinationBoundaryRanks(sides.destination),
                cut.shards);
  Boundary boundary;
  boundary.ranks.resize(static_cast<std::size_t>(num_ranks));
  FillIntervals(sides.source, lanes, shards, boundary);
  AddMessages(lanes, shards, sides.pairs, boundary);
  AddForward(sides.source, lanes, shards, boundary);
  AddBackward(sides.destination, lanes, shards, boundary);
  return std::move(boundary.ranks);
}

/// Fills the tables of microbatches, each distinct one once.
void FillTables(const BoundaryTokens& tokens, int num_lanes, int num_shards, Sides sides,
                int num_ranks, Boundary& boundary) {
  const bool alike = tokens.spans_of_sample.empty();
  std::map<std::vector<std::int64_t>, std::uint32_t> known;
  std::vector<internal::SpanCut> cuts;
  for (std::int64_t microbatch = 0; microbatch < (alike ? 1 : tokens.num_microbatches);
       ++microbatch) {
    const std::vector<std::int64_t> before =
        internal::SpansBeforeShards(tokens, num_shards, microbatch);
    const auto [at, is_new] = known.try_emplace(before, static_cast<std::uint32_t>(cuts.size()));
    if (is_new) cuts.push_back(internal::CutAtSpans(tokens, before, num_lanes));
    boundary.table_of_microbatch.push_back(at->second);
    boundary.tokens_forward +=
        cuts[at->second].shards.back().end * (alike ? tokens.num_microbatches : 1);
  }
  if (cuts.size() == 1) boundary.table_of_microbatch.clear();
  for (const internal::SpanCut& cut : cuts) AddPairs(cut, sides.pairs);
  boundary.ranks = MakeTable(sides, cuts.front(), num_ranks);
  for (std::size_t kind = 1; kind < cuts.size(); ++kind) {
    boundary.other_ranks.push_back(MakeTable(sides, cuts[kind], num_ranks));
  }
}

}  // namespace

Boundary BuildNonColocatedBoundary(const Grid& source, const Grid& destination,
                                   const BoundaryTokens& tokens, int num_ranks) {
  for (const base::Rank rank : source.Ranks()) {
    if (destination.contains(rank)) {
      throw base::Error(
          fmt::format("non-colocated modules can't share ranks: rank {} is in both", rank.value()));
    }
  }
  const int num_lanes = source.size(kDp);
  const int num_shards = destination.size(kDp);
  Boundary boundary;
  boundary.boundary_case = CaseOf(num_lanes, num_shards);
  if (boundary.boundary_case == BoundaryCase::kFanIn) {
    boundary.factor = num_lanes / num_shards;
  } else if (boundary.boundary_case == BoundaryCase::kFanOut) {
    boundary.factor = num_shards / num_lanes;
  }
  boundary.width = tokens.width;
  FillTables(tokens, num_lanes, num_shards, {source, destination, {}}, num_ranks, boundary);
  return boundary;
}

}  // namespace isthmus::plan
