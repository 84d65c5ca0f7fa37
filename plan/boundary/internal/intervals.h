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

/// `num_samples` samples one after the other, cut at span borders into `num_parts` intervals whose
/// numbers of spans differ by at most one: part p has spans ⌊p·N/parts⌋ … ⌊(p+1)·N/parts⌋−1 of N.
/// Where parts are a multiple of shards with as many samples each, no part crosses a shard border.
/// The last span of a sample is shorter if spans don't divide it.
std::vector<Interval> CutAtSpans(const BoundaryTokens& tokens, std::int64_t num_samples,
                                 int num_parts);

}  // namespace isthmus::plan::internal
