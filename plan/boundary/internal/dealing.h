#pragma once

#include <cstddef>
#include <vector>

#include "plan/boundary/boundary.h"

namespace isthmus::plan::internal {

/// Who has which tokens of a colocated edge's window: two grids over the same ranks, and the tokens
/// dealt to the source's lanes.
///
/// Lanes are put in the order of the shards that own their first ranks (ties: dp index) and cut the
/// spans of the window in that order (CutAtSpans), so that data stays with its shard wherever lanes
/// and shards share ranks. Lanes and shards count by dp index. Lifetime: the grids must outlive it.
struct Dealing {
  const Grid& source;
  const Grid& destination;
  std::vector<std::vector<base::Rank>> lane_ranks;   // last stage of each source lane
  std::vector<std::vector<base::Rank>> shard_ranks;  // all stages of each destination shard
  std::vector<int> lane_order;                       // lanes in the order of their tokens
  std::vector<int> lane_place;                       // by lane: where it is in that order
  std::vector<Interval> lane_tokens;
  std::vector<Interval> shard_tokens;

  Dealing(const Grid& from, const Grid& to, const BoundaryTokens& tokens);
  std::size_t LaneOf(base::Rank rank) const {
    return static_cast<std::size_t>(source.IndexIn(rank, kDp));
  }
  std::size_t ShardOf(base::Rank rank) const {
    return static_cast<std::size_t>(destination.IndexIn(rank, kDp));
  }
  /// Fan-in: the lanes inside each shard, in the order of their tokens.
  std::vector<std::vector<std::size_t>> LanesByShard() const;
};

/// Fan-in and fan-out are possible when no lane (or no shard) is torn between several of the other
/// side, in ranks as in tokens; then every rank of it can do the same with its own siblings.
BoundaryCase CaseOf(const Dealing& dealing);

}  // namespace isthmus::plan::internal
