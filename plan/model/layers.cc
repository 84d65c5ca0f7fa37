#include "plan/model/layers.h"

#include <algorithm>

#include "plan/model/internal/memory.h"
#include "plan/model/internal/rank_shape.h"

namespace isthmus::plan {
namespace {

using internal::RankShape;

std::int64_t Positions(const RankShape& rank) {
  const Transformer& t = *rank.transformer;
  if (t.rotary) return 0;
  return rank.decoder ? t.max_positions : std::max(t.max_positions, rank.module->span_tokens);
}

std::int64_t LayerMatrices(const RankShape& rank) {
  return rank.hidden * (rank.qkv() + rank.query + rank.fc1 + rank.ffn);
}

std::int64_t StemParameters(const RankShape& rank) {
  const std::int64_t positions = Positions(rank) * rank.hidden;
  if (rank.decoder) return positions + rank.vocabulary * rank.hidden;
  // Without patches to embed there is no stem: the tokens come as they are.
  if (rank.module->input_width == 0) return 0;
  return positions + rank.module->input_width * rank.hidden;
}

std::int64_t ProjectorRankParameters(const BlockShape& shape) {
  const Projector projector = internal::ProjectorOf(shape);
  return internal::CeilDivide(
      ProjectorParameters(projector, shape.projector_in, shape.projector_out), shape.tp);
}

// Inputs of the projector's linear layers (for its weights) and of the GELUs between them (for what
// is upstream). Its own input is whole on every rank, its inner widths are split.
std::int64_t ProjectorContext(const BlockShape& shape, const RankShape& rank) {
  if (!shape.block.projector) return 0;
  const bool weights = rank.projector_weights;
  const bool upstream =
      rank.encoder_side_projector() ? rank.layers_run_backward : shape.needs_input_gradient;
  if (!weights && !upstream) return 0;
  const Projector projector = internal::ProjectorOf(shape);
  const std::int64_t inner = projector.hidden > 0 ? projector.hidden : shape.projector_out;
  const std::int64_t kept_between = weights ? 2 : 1;
  const std::int64_t between = std::max(projector.num_layers - 1, 0) * kept_between * inner;
  const std::int64_t per_token =
      (weights ? shape.projector_in : 0) + internal::CeilDivide(between, rank.tp);
  return rank.element_bytes * internal::ProjectorTokens(shape) * per_token;
}

// Patches for the weight gradient; token ids (8 B) and the mask of the embedding's dropout.
std::int64_t StemContext(const BlockShape& shape, const RankShape& rank) {
  if (!shape.block.stem || !rank.layer_weights) return 0;
  if (!rank.decoder) return rank.element_bytes * rank.tokens * rank.module->input_width;
  const bool dropout = rank.transformer->hidden_dropout > 0.0;
  return 8 * rank.tokens + (dropout ? rank.sharded_tokens * rank.hidden : 0);
}

// Input and output of the final norm; the output is the input of the head's GEMM.
std::int64_t HeadContext(const BlockShape& shape, const RankShape& rank) {
  if (!shape.block.head || !rank.layers_run_backward) return 0;
  const bool gathered = rank.rules().keeps_gathered_norm_outputs;
  const std::int64_t output = !rank.layer_weights ? 0
                              : gathered          ? rank.tokens
                                                  : rank.sharded_tokens;
  return rank.element_bytes * (rank.sharded_tokens + output) * rank.hidden;
}

std::int64_t EndsContext(const BlockShape& shape, const RankShape& rank) {
  return ProjectorContext(shape, rank) + StemContext(shape, rank) + HeadContext(shape, rank);
}

std::int64_t BytesPerLogit(LossKernel loss) {
  switch (loss) {
    case LossKernel::kFused:
      return 6;
    case LossKernel::kUnfused:
      return 10;
    case LossKernel::kInPlace:
      return 2;
    case LossKernel::kShiftedCopy:
      return 8;
    case LossKernel::kEager:
      return 14;
    case LossKernel::kGatheredEager:
      return 16;
    case LossKernel::kHeldOutputs:
      return 20;
  }
  return 0;
}

}  // namespace

base::Bytes ContextBytes(const BlockShape& shape) {
  const RankShape rank = internal::ShapeOnRank(shape);
  const std::int64_t layers = rank.layers_run_backward
                                  ? shape.block.num_layers * internal::LayerContextBytes(rank, true)
                                  : 0;
  return base::Bytes(layers + EndsContext(shape, rank));
}

base::Bytes CheckpointBytes(const BlockShape& shape) {
  const RankShape rank = internal::ShapeOnRank(shape);
  if (!rank.layers_run_backward) return base::Bytes(EndsContext(shape, rank));
  const std::int64_t recomputed = internal::RecomputedLayers(shape);
  const std::int64_t kept = shape.block.num_layers - recomputed;
  const std::int64_t input = rank.element_bytes * rank.sharded_tokens * rank.hidden;
  return base::Bytes(recomputed * input + kept * internal::LayerContextBytes(rank, true) +
                     EndsContext(shape, rank));
}

base::Bytes ActivationBytes(const BlockShape& shape) {
  const RankShape rank = internal::ShapeOnRank(shape);
  if (shape.block.projector && rank.encoder_side_projector()) {
    return base::Bytes(rank.element_bytes * internal::ProjectorTokens(shape) * shape.projector_out);
  }
  return base::Bytes(rank.element_bytes * rank.sharded_tokens * rank.hidden);
}

base::Bytes LogitBytes(const BlockShape& shape) {
  if (!shape.block.head) return base::Bytes(0);
  const RankShape rank = internal::ShapeOnRank(shape);
  const LossKernel loss = rank.settings->loss;
  const std::int64_t logits = rank.tokens * rank.vocabulary;
  if (loss != LossKernel::kGatheredEager) return base::Bytes(BytesPerLogit(loss) * logits);
  // The rank's own 16-bit logits stay beside the gathered ones.
  return base::Bytes(BytesPerLogit(loss) * logits * rank.tp + 2 * logits);
}

base::Bytes LogitGradientBytes(const BlockShape& shape) {
  if (!shape.block.head) return base::Bytes(0);
  const RankShape rank = internal::ShapeOnRank(shape);
  return base::Bytes(rank.element_bytes * rank.tokens * rank.vocabulary);
}

base::Bytes PlaceholderBytes(const BlockShape& shape) {
  const RankShape rank = internal::ShapeOnRank(shape);
  const bool keeps = rank.rules().keeps_placeholder_gradients;
  if (!keeps || shape.block.num_layers == 0 || !rank.layer_weights) return base::Bytes(0);
  return base::Bytes(2 * LayerMatrices(rank));
}

base::Bytes WeightCopyBytes(const BlockShape& shape) {
  const RankShape rank = internal::ShapeOnRank(shape);
  if (rank.settings->precision != DType::kFp8) return base::Bytes(0);
  // Beside fp8 weights the transposed copy, and the second byte of what stays in 16 bit.
  if (rank.settings->fp8_primary_weights) return base::Bytes(RankParameters(shape));
  // Row- and column-wise copies in fp8, one byte each, beside the 16-bit weights.
  return base::Bytes(std::int64_t{2} * shape.block.num_layers * LayerMatrices(rank));
}

std::int64_t RankParameters(const BlockShape& shape) {
  const RankShape rank = internal::ShapeOnRank(shape);
  const Block& block = shape.block;
  const std::int64_t layer = LayerMatrices(rank) + 2 * NormParameters(*rank.transformer);
  std::int64_t parameters = block.num_layers * layer;
  if (block.stem) parameters += StemParameters(rank);
  if (block.projector) parameters += ProjectorRankParameters(shape);
  if (block.head) {
    const bool shares = rank.transformer->tied_embeddings && (block.stem || block.head_shares_stem);
    parameters += NormParameters(*rank.transformer);
    if (!shares) parameters += rank.vocabulary * rank.hidden;
  }
  return parameters;
}

std::int64_t ReplicatedParameters(const BlockShape& shape) {
  const std::int64_t norms = 2 * shape.block.num_layers + (shape.block.head ? 1 : 0);
  return norms * NormParameters(shape.module->transformer);
}

std::int64_t PaddedVocabulary(std::int64_t vocab_size, int tp, int vocabulary_multiple) {
  const std::int64_t multiple = static_cast<std::int64_t>(vocabulary_multiple) * tp;
  return internal::CeilDivide(vocab_size, multiple) * multiple;
}

}  // namespace isthmus::plan
