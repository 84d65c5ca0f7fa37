#pragma once

#include <cstdint>
#include <vector>

#include "plan/boundary/boundary.h"

/// Arithmetic on intervals of flattened tokens, shared by both kinds of boundary.
namespace isthmus::plan::internal {

/// Common part of two intervals; {0, 0} if there is none.
Interval Intersect(const Interval& a, const Interval& b);

/// True if every token of `inner` is in `outer`. An empty interval is inside any that touches it.
bool Contains(const Interval& outer, const Interval& inner);

/// Part `index` of `parts` nearly equal ones, cut by token: ⌊k·n/parts⌋ are the borders. How a
/// context-parallel rank's slice of its lane is modelled.
Interval Slice(const Interval& whole, int index, int parts);

/// Spans in front of each shard where shards stand one after the other, and of all at the end: of
/// the whole window, or of one microbatch.
std::vector<std::int64_t> SpansBeforeShards(const BoundaryTokens& tokens, int num_shards);
std::vector<std::int64_t> SpansBeforeShards(const BoundaryTokens& tokens, int num_shards,
                                            std::int64_t microbatch);

/// Tokens by shard, and of the parts they are cut into at span borders.
struct SpanCut {
  std::vector<Interval> shards;
  std::vector<Interval> parts;
};

/// Where parts are a multiple of shards, the k parts of a shard with n spans have its spans ⌊j·n/k⌋
/// … ⌊(j+1)·n/k⌋−1; where shards are a multiple of parts, a part has its shards whole; else part p
/// has spans ⌊p·N/parts⌋ … ⌊(p+1)·N/parts⌋−1 of all N. With as many spans in every shard all three
/// are the last one.
SpanCut CutAtSpans(const BoundaryTokens& tokens, const std::vector<std::int64_t>& before_shards,
                   int num_parts);

}  // namespace isthmus::plan::internal
