#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "plan/layout/grid.h"
#include "plan/model/kernel.h"

/// Boundary communicators: how the tensor on an edge u→v moves from u's ranks to v's, and its
/// gradient back (paper §3.1–§3.5, reference §6.2, §6.4).
///
/// The flattened token dimension of the boundary tensor is ordered (LLM data-parallel shard,
/// microbatch, sample slot, token). From two maps, which rank *holds* and which *needs* each
/// interval, everything else follows. Bridges never scale gradients.
namespace isthmus::plan {

/// Half-open interval of flattened tokens.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

enum class BoundaryCase : std::uint8_t { kLocal, kEqual, kFanIn, kFanOut, kIrregular };
std::string ToText(BoundaryCase boundary_case);

/// One step of a transform, in the order ranks run it.
struct BoundaryStep {
  enum class Kind : std::uint8_t {
    kSelect,      // local: keep an interval of what is held
    kCollective,  // over `group` of the rank's boundary groups
    kTransfers,   // leader-to-leader P2P (non-colocated)
  };
  Kind kind = Kind::kSelect;
  CollectiveKind collective = CollectiveKind::kAllGather;
  std::uint16_t group = 0;   // index into RankBoundary::groups
  std::int64_t tokens = 0;   // kCollective: size by the convention of InnerCollective::bytes
};

/// A message of a leader: to or from `peer`, an interval of the (window's or microbatch's) tokens.
struct BoundaryMessage {
  base::Rank peer{0};
  Interval tokens;
};

/// What one rank has to do with an edge.
///
/// Colocated: intervals are over the whole window (all microbatches of the step). Non-colocated:
/// over one microbatch of all shards; every microbatch is alike.
struct RankBoundary {
  Interval held_forward;     // u's output on this rank (empty: holds nothing)
  Interval needed_forward;   // what v needs here
  Interval held_backward;    // v's gradient here
  Interval needed_backward;  // what u's backward needs here
  std::vector<std::vector<base::Rank>> groups;   // communicators, members in slot order
  std::vector<std::vector<std::int64_t>> group_tokens;  // per group: tokens each member contributes
  std::vector<BoundaryStep> forward;
  std::vector<BoundaryStep> backward;
  std::vector<BoundaryMessage> sends_forward;      // source leaders
  std::vector<BoundaryMessage> receives_forward;   // destination leaders
  std::vector<BoundaryMessage> sends_backward;     // destination leaders
  std::vector<BoundaryMessage> receives_backward;  // source leaders
  bool source_leader = false;
  bool destination_leader = false;
  /// kAllToAllV: tokens this rank sends to each member of its group, forward and backward.
  std::vector<std::int64_t> all_to_all_forward;
  std::vector<std::int64_t> all_to_all_backward;
};

/// The boundary of one edge.
struct Boundary {
  BoundaryCase boundary_case = BoundaryCase::kLocal;
  bool colocated = false;
  int factor = 1;  // s: sources per destination (fan-in) or destinations per source (fan-out)
  std::int64_t width = 0;               // elements per token of the boundary tensor
  std::int64_t tokens_forward = 0;      // whole step, all shards
  std::vector<RankBoundary> ranks;      // by rank; empty for homogeneous edges
};

/// Tokens of the boundary tensor, the same for every sample in this form: `tokens_per_sample` LLM
/// tokens in spans (images, clips) of `span_tokens` that an encoder shard can't cut.
struct BoundaryTokens {
  std::int64_t tokens_per_sample = 0;
  std::int64_t span_tokens = 0;
  std::int64_t samples_per_microbatch = 0;  // of one LLM shard
  std::int64_t num_microbatches = 0;
  std::int64_t width = 0;
};

/// Same ranks, two grids. Any TP, CP, PP and DP on both sides; data is dealt to encoder lanes by the
/// LLM shard that owns the lane's ranks. Reduces to all-gather and select where the groups allow it,
/// else to an all-to-all-v. Throws base::Error if the grids don't cover the same ranks.
Boundary BuildColocatedBoundary(const Grid& source, const Grid& destination, const BoundaryTokens& tokens,
                                int num_ranks);

/// Disjoint ranks: leader to leader per shard, then a broadcast over tp×cp; one microbatch at a time.
Boundary BuildNonColocatedBoundary(const Grid& source, const Grid& destination, const BoundaryTokens& tokens,
                                   int num_ranks);

/// Leaders: the last rank of each source lane, the first of each destination lane (reference §6.2).
std::vector<base::Rank> SourceLeaders(const Grid& grid);
std::vector<base::Rank> DestinationLeaders(const Grid& grid);

}  // namespace isthmus::plan
