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
  bool empty() const { return end == begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

enum class BoundaryCase : std::uint8_t { kLocal, kEqual, kFanIn, kFanOut, kIrregular };
std::string ToText(BoundaryCase boundary_case);

/// One step of a transform, in the order ranks run it. After it the rank holds the step's result
/// and nothing else.
struct BoundaryStep {
  enum class Kind : std::uint8_t {
    kSelect,      // local: keep needed_forward (or needed_backward) of what is held
    kCollective,  // over `group` of the rank's boundary groups
    kTransfers,   // leader-to-leader P2P (non-colocated)
  };
  Kind kind = Kind::kSelect;
  CollectiveKind collective = CollectiveKind::kAllGather;
  std::uint16_t group = 0;  // index into RankBoundary::groups
  /// kCollective: size by the convention of InnerCollective::bytes, equal on all members. For
  /// all-to-all-v the uniform all-to-all whose busiest member moves as much: busiest·n/(n−1), where
  /// busiest is the most that any of the n members sends to or receives from the others.
  /// kSelect: tokens kept. kTransfers: tokens sent or received by this rank.
  std::int64_t tokens = 0;
  /// kCollective: tokens each member of the group contributes (broadcast: the root all, the others
  /// 0).
  std::vector<std::int64_t> member_tokens;
  friend bool operator==(const BoundaryStep&, const BoundaryStep&) = default;
};

/// A message of a leader: to or from `peer`, an interval of the (window's or microbatch's) tokens.
struct BoundaryMessage {
  base::Rank peer{0};
  Interval tokens;
  friend bool operator==(const BoundaryMessage&, const BoundaryMessage&) = default;
};

/// What one rank has to do with an edge.
///
/// Colocated: intervals are over the whole window (all microbatches of the step). Non-colocated:
/// over one microbatch of all shards. A rank that holds or needs nothing has an empty interval.
/// With source cp > 1 a rank holds, and gets the gradient of, a slice of its
/// lane's interval (equal slices by token, in cp order). With destination cp > 1 what is held
/// backward is a partial sum over cp.
///
/// All members of a communicator list it with the same members in the same order, and run their
/// collectives on it in the same order. Ranks of one stage may have different steps when the case
/// is kIrregular, and other numbers of messages when shards are uneven: see StepShape.
struct RankBoundary {
  Interval held_forward;     // u's output on this rank
  Interval needed_forward;   // what v needs here
  Interval held_backward;    // v's gradient here
  Interval needed_backward;  // what u's backward needs here
  /// Communicators, each once. Members of an all-gather come in slot order: results are their parts
  /// one after the other. The first member is the root of a broadcast or reduce.
  std::vector<std::vector<base::Rank>> groups;
  std::vector<BoundaryStep> forward;
  std::vector<BoundaryStep> backward;
  /// Messages in the order of their intervals, each in some microbatch with tokens: where those
  /// differ, one may be empty in others, and nothing moves then.
  std::vector<BoundaryMessage> sends_forward;      // source leaders
  std::vector<BoundaryMessage> receives_forward;   // destination leaders
  std::vector<BoundaryMessage> sends_backward;     // destination leaders
  std::vector<BoundaryMessage> receives_backward;  // source leaders
  bool source_leader = false;
  bool destination_leader = false;
  /// kAllToAllV: what this rank sends to each member of the group, itself included; empty when
  /// the rank has no such step. A rank puts what it receives into the order of the intervals.
  std::vector<Interval> all_to_all_forward;
  std::vector<Interval> all_to_all_backward;
};

/// The boundary of one edge.
struct Boundary {
  BoundaryCase boundary_case = BoundaryCase::kLocal;
  bool colocated = false;
  /// s: sources per destination (fan-in) or destinations per source (fan-out); 1 otherwise.
  int factor = 1;
  std::int64_t width = 0;           // elements per token of the boundary tensor
  std::int64_t tokens_forward = 0;  // whole step, all shards
  /// By rank; empty for homogeneous edges. Non-colocated: of microbatch 0.
  std::vector<RankBoundary> ranks;
  /// Non-colocated, where microbatches differ in their tokens: the table of each microbatch, 0 for
  /// `ranks`, i for other_ranks[i - 1]. Else empty: all are alike. Groups, collectives and peers of
  /// messages are the same in all tables.
  std::vector<std::uint32_t> table_of_microbatch;
  std::vector<std::vector<RankBoundary>> other_ranks;

  bool microbatches_differ() const { return !table_of_microbatch.empty(); }
  /// All ranks in a microbatch; colocated: in the window, whichever number is given.
  const std::vector<RankBoundary>& In(std::int32_t microbatch) const;
  const RankBoundary& At(base::Rank rank, std::int32_t microbatch) const {
    return In(microbatch)[rank.index()];
  }
};

/// Tokens of the boundary tensor: in spans (images, clips) of `span_tokens` LLM tokens that an
/// encoder shard can't cut.
struct BoundaryTokens {
  std::int64_t tokens_per_sample = 0;
  std::int64_t span_tokens = 0;
  std::int64_t samples_per_microbatch = 0;  // of one LLM shard
  std::int64_t num_microbatches = 0;
  std::int64_t width = 0;
  /// As Module::spans_of_sample. Empty: every sample has tokens_per_sample tokens.
  std::vector<std::int32_t> spans_of_sample;
};

/// Same ranks, two grids, any TP, CP, PP and DP on both sides. Data is dealt to encoder lanes (dp
/// indices) by the LLM shard that owns the lane's first rank. In that order lanes cut the spans of
/// their shard as evenly as can be, or have those of several whole shards, or, where neither number
/// divides the other, cut all spans evenly. DP may exceed the number of spans: some lanes are empty
/// then. A collective of no tokens stays in the list and is skipped by all.
///
/// Forward: all-gather over source cp; then nothing (equal), an all-gather over the lanes of a
/// shard (fan-in) or a select (fan-out), else an all-to-all-v. Backward: sum over destination cp,
/// broadcast from stage 0 over destination pp; then a select (fan-in), an all-gather over the
/// shards of a lane (fan-out), else an all-to-all-v. Throws base::Error if the grids don't cover
/// the same ranks. Cost: O(ranks · group size).
Boundary BuildColocatedBoundary(const Grid& source, const Grid& destination,
                                const BoundaryTokens& tokens, int num_ranks);

/// Disjoint ranks: leader to leader per shard, then a broadcast over tp×cp; one microbatch at a
/// time. Source lanes in dp order cut the microbatch's spans by the same rule.
///
/// Forward: all-gather over source cp, transfers by overlap of intervals, broadcast from the
/// leader. Backward: sum over destination cp to the leader, transfers, broadcast from the source
/// leader, select of the cp slice. Throws base::Error if the grids share a rank. Cost: O(ranks ·
/// group size), for each distinct microbatch.
Boundary BuildNonColocatedBoundary(const Grid& source, const Grid& destination,
                                   const BoundaryTokens& tokens, int num_ranks);

/// Leaders by dp index: the last rank of each source lane, the first of each destination lane
/// (reference §6.2).
std::vector<base::Rank> SourceLeaders(const Grid& grid);
std::vector<base::Rank> DestinationLeaders(const Grid& grid);

/// Ranks that hold the boundary tensor, by dp index: the tp×cp ranks of the source's last and of
/// the destination's first stage.
std::vector<std::vector<base::Rank>> SourceBoundaryRanks(const Grid& grid);
std::vector<std::vector<base::Rank>> DestinationBoundaryRanks(const Grid& grid);

/// Payload of a step as the paper counts it (reference §2.6): bytes of the tensor materialised on
/// the rank that has most of it, all microbatches together; not bytes on the wire. Forward: the
/// larger of what is held before and what is needed after the transform. Backward: what is needed
/// after it.
base::Bytes PayloadForward(const Boundary& boundary, std::int64_t num_microbatches,
                           base::Bytes element_bytes);
base::Bytes PayloadBackward(const Boundary& boundary, std::int64_t num_microbatches,
                            base::Bytes element_bytes);

/// Everything about a rank's part that is not a size or the number of another rank: kinds and
/// groups of its steps, numbers of messages, leader flags. Ranks with equal shapes can share a list
/// of ops.
std::vector<int> StepShape(const RankBoundary& rank);

}  // namespace isthmus::plan
