#include "plan/model/internal/rank_shape.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::plan::internal {
namespace {

void FindNeeds(const BlockShape& shape, RankShape& rank) {
  const bool absent = shape.module->settings.backward == BackwardMode::kAbsent;
  rank.projector_weights = shape.block.projector && !ProjectorOf(shape).frozen && !absent;
  // A block of nothing but a projector has no weights of the module.
  const Block& block = shape.block;
  const bool has_own = block.num_layers > 0 || block.stem || block.head || !block.projector;
  rank.layer_weights = shape.needs_weight_gradient && !absent && has_own;
  // A trained projector in front of the layers needs the gradient that comes out of them.
  const bool projector_in_front = rank.projector_weights && !rank.encoder_side_projector();
  rank.layers_run_backward =
      !absent && (rank.layer_weights || shape.needs_input_gradient || projector_in_front);
}

}  // namespace

RankShape ShapeOnRank(const BlockShape& shape) {
  ISTHMUS_CHECK(shape.module != nullptr);
  ISTHMUS_CHECK(shape.tp >= 1 && shape.cp >= 1 && shape.tokens >= 0);
  const Transformer& t = shape.module->transformer;
  RankShape rank;
  rank.module = shape.module;
  rank.transformer = &t;
  rank.settings = &shape.module->settings;
  rank.tp = shape.tp;
  rank.cp = shape.cp;
  rank.tokens = shape.tokens;
  rank.span = shape.span > 0 ? shape.span : shape.tokens * shape.cp;
  rank.hidden = t.hidden;
  rank.query = CeilDivide(t.num_heads, shape.tp) * t.head_dim;
  rank.kv = CeilDivide(t.num_kv_heads, shape.tp) * t.head_dim;
  rank.ffn = CeilDivide(t.ffn_hidden, shape.tp);
  rank.fc1 = t.gated_mlp ? 2 * rank.ffn : rank.ffn;
  rank.vocabulary =
      PaddedVocabulary(t.vocab_size, shape.tp, rank.rules().vocabulary_multiple) / shape.tp;
  rank.sequence_parallel = shape.tp > 1 && rank.settings->sequence_parallel;
  rank.sharded_tokens = rank.sequence_parallel ? CeilDivide(shape.tokens, shape.tp) : shape.tokens;
  rank.decoder = shape.module->kind == ModuleKind::kDecoder;
  rank.element_bytes = BytesOf(ActivationType(*rank.settings)).value();
  rank.overlap = rank.settings->tp_overlap;
  // User buffers chunk all-gathers and reduce-scatters; an all-reduce has no such form.
  if (rank.overlap == TpOverlap::kUserBuffers && !rank.sequence_parallel) {
    rank.overlap = TpOverlap::kBulk;
  }
  FindNeeds(shape, rank);
  return rank;
}

int RecomputedLayers(const BlockShape& shape) {
  const ModuleSettings& settings = shape.module->settings;
  if (settings.recompute != Recompute::kFull || !ShapeOnRank(shape).layers_run_backward) return 0;
  if (shape.recomputed_layers) return std::min(*shape.recomputed_layers, shape.block.num_layers);
  if (settings.recompute_layers == 0) return shape.block.num_layers;
  return std::min(settings.recompute_layers, shape.block.num_layers);
}

Projector ProjectorOf(const BlockShape& shape) {
  if (shape.projector != nullptr) return *shape.projector;
  return shape.module->projector.value_or(Projector{});
}

std::int64_t ProjectorTokens(const BlockShape& shape) {
  return shape.projector_tokens.value_or(shape.tokens);
}

}  // namespace isthmus::plan::internal
