#include "plan/boundary/internal/steps.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "plan/boundary/internal/intervals.h"

namespace isthmus::plan::internal {
namespace {

std::vector<BoundaryStep>& StepsOf(RankBoundary& rank, Direction direction) {
  return direction == Direction::kForward ? rank.forward : rank.backward;
}

/// Steps over equal members share a communicator, and so the order of their ops.
std::uint16_t GroupOf(RankBoundary& rank, const std::vector<base::Rank>& members) {
  const auto known = std::find(rank.groups.begin(), rank.groups.end(), members);
  if (known != rank.groups.end()) return static_cast<std::uint16_t>(known - rank.groups.begin());
  ISTHMUS_CHECK(rank.groups.size() < std::numeric_limits<std::uint16_t>::max());
  rank.groups.push_back(members);
  return static_cast<std::uint16_t>(rank.groups.size() - 1);
}

}  // namespace

RankBoundary& At(Boundary& boundary, base::Rank rank) { return boundary.ranks[rank.index()]; }

const Interval& NeededOf(const RankBoundary& rank, Direction direction) {
  return direction == Direction::kForward ? rank.needed_forward : rank.needed_backward;
}

void AddCollective(Boundary& boundary, Direction direction, CollectiveKind collective,
                   const std::vector<base::Rank>& members,
                   const std::vector<std::int64_t>& member_tokens) {
  ISTHMUS_CHECK(collective != CollectiveKind::kAllToAllV);
  if (members.size() < 2) {
    return;
  }
  const std::int64_t tokens =
      collective == CollectiveKind::kAllGather
          ? std::accumulate(member_tokens.begin(), member_tokens.end(), std::int64_t{0})
          : *std::max_element(member_tokens.begin(), member_tokens.end());
  AddSizedCollective(boundary, direction, collective, members, member_tokens, tokens);
}

void AddSizedCollective(Boundary& boundary, Direction direction, CollectiveKind collective,
                        const std::vector<base::Rank>& members,
                        const std::vector<std::int64_t>& member_tokens, std::int64_t tokens) {
  ISTHMUS_CHECK(members.size() == member_tokens.size());
  for (const base::Rank member : members) {
    RankBoundary& rank = At(boundary, member);
    const std::uint16_t group = GroupOf(rank, members);
    StepsOf(rank, direction)
        .push_back({.kind = BoundaryStep::Kind::kCollective,
                    .collective = collective,
                    .group = group,
                    .tokens = tokens,
                    .member_tokens = member_tokens});
  }
}

void AddSelect(RankBoundary& rank, Direction direction, const Interval& held) {
  const Interval& needed = NeededOf(rank, direction);
  if (needed == held || (needed.empty() && held.empty())) {
    return;
  }
  ISTHMUS_CHECK(Contains(held, needed));
  StepsOf(rank, direction)
      .push_back({.kind = BoundaryStep::Kind::kSelect, .tokens = needed.size()});
}

}  // namespace isthmus::plan::internal
