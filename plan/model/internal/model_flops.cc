#include "plan/model/internal/pieces.h"

namespace isthmus::plan::internal {
namespace {

// FLOP of one pass over the matrices of each piece, this rank's share of the tp group's work.
struct MatrixFlops {
  double layer = 0.0;
  double head = 0.0;
  double stem = 0.0;
  double projector = 0.0;
  double projector_first = 0.0;  // of that, its first linear layer
};

MatrixFlops OnePass(const BlockShape& shape, const RankShape& rank) {
  const Transformer& t = *rank.transformer;
  const double two_tokens = 2.0 * static_cast<double>(rank.tokens) / rank.tp;
  MatrixFlops flops;
  flops.layer = two_tokens * static_cast<double>(LayerMatrixParameters(t));
  if (shape.block.head) flops.head = two_tokens * static_cast<double>(t.hidden * t.vocab_size);
  if (shape.block.stem && !rank.decoder) {
    flops.stem = two_tokens * static_cast<double>(t.hidden * rank.module->input_width);
  }
  if (shape.block.projector) {
    const Projector projector = ProjectorOf(shape);
    const double two = 2.0 * static_cast<double>(ProjectorTokens(shape)) / rank.tp;
    const std::int64_t all =
        ProjectorParameters(projector, shape.projector_in, shape.projector_out);
    const std::int64_t inner = projector.hidden > 0 ? projector.hidden : shape.projector_out;
    const std::int64_t first =
        shape.projector_in * (projector.num_layers > 1 ? inner : shape.projector_out);
    flops.projector = two * static_cast<double>(all);
    flops.projector_first = two * static_cast<double>(first);
  }
  return flops;
}

double InputFlops(const BlockShape& shape, const RankShape& rank, const MatrixFlops& one) {
  double flops = 0.0;
  if (rank.layers_run_backward) {
    flops += shape.block.num_layers * (one.layer + 2.0 * AttentionModelFlops(rank)) + one.head;
  }
  // Past its first layer a projector passes gradients on only for others.
  const bool upstream =
      rank.encoder_side_projector() ? rank.layers_run_backward : shape.needs_input_gradient;
  if (upstream || rank.projector_weights) {
    flops += one.projector - (upstream ? 0.0 : one.projector_first);
  }
  return flops;
}

double WeightFlops(const BlockShape& shape, const RankShape& rank, const MatrixFlops& one) {
  double flops = rank.projector_weights ? one.projector : 0.0;
  if (rank.layer_weights) flops += shape.block.num_layers * one.layer + one.head + one.stem;
  return flops;
}

}  // namespace

base::Flops ModelFlops(const BlockShape& shape, const RankShape& rank, Action action) {
  const MatrixFlops one = OnePass(shape, rank);
  switch (action) {
    case Action::kForward:
      return base::Flops(shape.block.num_layers * (one.layer + AttentionModelFlops(rank)) +
                         one.head + one.stem + one.projector);
    case Action::kBackward:
      return base::Flops(InputFlops(shape, rank, one) + WeightFlops(shape, rank, one));
    case Action::kBackwardInput:
      return base::Flops(InputFlops(shape, rank, one));
    case Action::kBackwardWeight:
      return base::Flops(WeightFlops(shape, rank, one));
    case Action::kRecompute:
      break;
  }
  return base::Flops(0.0);
}

}  // namespace isthmus::plan::internal
