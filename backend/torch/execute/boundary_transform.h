#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "backend/torch/comm/communicators.h"
#include "backend/torch/execute/value_table.h"
#include "plan/program/program.h"

namespace isthmus::backend {

enum class Way : std::uint8_t { kForward, kBackward };

/// Rows of a boundary tensor and which tokens they are.
struct BoundaryRows {
  at::Tensor rows;  // [tokens, width]
  plan::Interval tokens;
};

/// What one rank does on one edge: the steps of plan::RankBoundary on real tensors.
///
/// A rank's value at any point is rows of consecutive tokens, perhaps none, or the pieces that
/// messages brought, in order. Selects have no ops: they are views, taken when the tensor is asked
/// for. Bridges never scale. Microbatches are those of ops (-1: the window).
/// Belongs to one rank's thread. Lifetime: program outlives it.
class BoundaryTransform {
 public:
  BoundaryTransform(const plan::Program& program, std::size_t edge, base::Rank rank,
                    at::Device device);

  std::int64_t width() const { return boundary_.width; }
  at::ScalarType type() const { return type_; }
  /// Of the rank's encoder output, or of the decoder's gradient; homogeneous: `rows` from 0.
  plan::Interval Held(Way way, std::int32_t microbatch, std::int64_t rows) const;
  at::Tensor Zeros(std::int64_t rows) const;

  /// What is needed out of `held`, the values after the last collective.
  BoundaryRows Needed(Way way, std::int32_t microbatch, const std::vector<HeldValue*>& held) const;
  /// A message's rows out of what is held.
  at::Tensor MessageRows(const HeldValue& held, const plan::Interval& tokens) const;
  /// Message `index` of the rank in a microbatch, numbered as plan::PeerRef does.
  const plan::BoundaryMessage& Message(std::size_t index, std::int32_t microbatch) const;

  /// Runs the collective step that `op` is on `held` (nothing: the rank brings no rows) into
  /// `result`. One of no tokens is not run.
  void Run(Way way, const plan::Op& op, const std::vector<HeldValue*>& held, Communicator& group,
           HeldValue& result) const;

 private:
  const plan::RankBoundary& here(std::int32_t microbatch) const {
    return boundary_.At(rank_, microbatch);
  }
  BoundaryRows Join(const std::vector<HeldValue*>& held) const;
  plan::Interval HeldByRoot(Way way, std::int32_t microbatch, base::Rank root) const;
  void AllGather(const plan::BoundaryStep& step, BoundaryRows mine, Communicator& group,
                 HeldValue& result) const;
  void AllToAllV(Way way, const plan::BoundaryStep& step, const BoundaryRows& mine,
                 Communicator& group, HeldValue& result) const;
  void Broadcast(const plan::BoundaryStep& step, const BoundaryRows& mine, Communicator& group,
                 HeldValue& result) const;

  const plan::Boundary& boundary_;
  base::Rank rank_;
  at::Device device_;
  at::ScalarType type_;
};

}  // namespace isthmus::backend
