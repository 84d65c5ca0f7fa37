#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/boundary/boundary.h"

/// Writing steps into the ranks of a boundary. Steps are added phase by phase, each phase to all
/// its ranks before the next one begins, so that communicators are used in the same order
/// everywhere.
namespace isthmus::plan::internal {

enum class Direction : std::uint8_t { kForward, kBackward };

RankBoundary& At(Boundary& boundary, base::Rank rank);
const Interval& NeededOf(const RankBoundary& rank, Direction direction);

/// Adds one collective to all `members`, each contributing the tokens at its place in
/// `member_tokens`. Nothing for a single member. Not for all-to-all-v.
void AddCollective(Boundary& boundary, Direction direction, CollectiveKind collective,
                   const std::vector<base::Rank>& members,
                   const std::vector<std::int64_t>& member_tokens);

/// The same for any collective, with the size of its step given.
void AddSizedCollective(Boundary& boundary, Direction direction, CollectiveKind collective,
                        const std::vector<base::Rank>& members,
                        const std::vector<std::int64_t>& member_tokens, std::int64_t tokens);

/// Adds the step that keeps what is needed, unless just that is held: `held` is what the rank holds
/// before it.
void AddSelect(RankBoundary& rank, Direction direction, const Interval& held);

/// Ranks that hold the same tokens.
struct Holder {
  Interval tokens;
  std::vector<base::Rank> ranks;
};

/// A rank that needs tokens. `lane_index` is its place in its own tp×cp group.
struct Need {
  base::Rank rank;
  Interval tokens;
  int lane_index = 0;
};

/// Moves tokens from holders to needs by an all-to-all-v over each connected component of ranks
/// that have to exchange anything; ranks that hold what they need get a select at most.
///
/// Sources are chosen in order of needs and deterministically: the rank itself, else the holder's
/// rank with the least sent so far, ties going to the one at the same place in its group, then to
/// the following ones. Holders come in the order of their intervals.
void AddAllToAll(Boundary& boundary, Direction direction, std::span<const Holder> holders,
                 std::span<const Need> needs);

}  // namespace isthmus::plan::internal
