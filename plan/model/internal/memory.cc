#include "plan/model/internal/memory.h"

#include <algorithm>

namespace isthmus::plan::internal {
namespace {

// Exact elements per token before division, on the whole tp group.
std::int64_t WidthOf(const RankShape& rank, SavedWidth width) {
  const Transformer& t = *rank.transformer;
  switch (width) {
    case SavedWidth::kOne:
      return 1;
    case SavedWidth::kHidden:
      return t.hidden;
    case SavedWidth::kQuery:
      return t.num_heads * t.head_dim;
    case SavedWidth::kKeyValue:
      return 2 * rank.kv * rank.tp;  // replicated heads count on every rank
    case SavedWidth::kQkv:
      return rank.qkv() * rank.tp;
    case SavedWidth::kFfn:
      return t.ffn_hidden;
    case SavedWidth::kFc1:
      return (t.gated_mlp ? 2 : 1) * t.ffn_hidden;
    case SavedWidth::kHeads:
      return t.num_heads;
    case SavedWidth::kHeadsTimesSpan:
      return t.num_heads * rank.span;
  }
  return 0;
}

const SavedTensorTable& TableOf(const RankShape& rank) {
  const MemoryRules& rules = rank.rules();
  return rank.settings->precision == DType::kFp8 && rules.saved_fp8 != nullptr ? *rules.saved_fp8
                                                                               : *rules.saved;
}

bool IsThere(const RankShape& rank, SavedWhen when) {
  const bool unfused = rank.settings->attention == AttentionKernel::kUnfused;
  const bool dropout = rank.transformer->hidden_dropout > 0.0;
  switch (when) {
    case SavedWhen::kAlways:
      return true;
    case SavedWhen::kWeightGradient:
      return rank.layer_weights;
    case SavedWhen::kHiddenDropout:
      return dropout;
    case SavedWhen::kFlash:
      return !unfused;
    case SavedWhen::kUnfused:
      return unfused;
    case SavedWhen::kUnfusedDropout:
      return unfused && dropout;
    case SavedWhen::kSeveralSamples:
      return rank.tokens * rank.cp > rank.span;
    case SavedWhen::kHeadExchange:
      return rank.cp > 1 && rank.settings->context_parallel == ContextParallel::kAllToAll;
  }
  return false;
}

// The buffer of a gathered input or gradient; 0 when nothing is gathered.
std::int64_t GatheredBytes(const RankShape& rank) {
  return rank.sequence_parallel ? rank.element_bytes * rank.tokens * rank.hidden : 0;
}

// Gradients of a block's output and input that are values of their own, which the ledger knows.
int GradientValues(const BlockShape& shape, const RankShape& rank) {
  const Block& block = shape.block;
  const bool projects_output = block.projector && rank.encoder_side_projector();
  const bool projects_input = block.projector && !rank.encoder_side_projector();
  const int output = block.head || projects_output ? 0 : 1;
  const int input = shape.needs_input_gradient && !projects_input && !block.stem ? 1 : 0;
  return output + input;
}

std::int64_t BytesOf(const BackwardTensors& tensors, const BlockShape& shape,
                     const RankShape& rank) {
  const int sharded = std::max(0, tensors.sharded - GradientValues(shape, rank));
  const std::int64_t elements =
      sharded * rank.sharded_tokens * rank.hidden +
      rank.tokens * (tensors.whole * rank.hidden + tensors.fc1 * rank.fc1 + tensors.ffn * rank.ffn +
                     tensors.qkv * rank.qkv());
  return rank.element_bytes * elements + tensors.gathered * GatheredBytes(rank);
}

// In a ring two blocks of keys and values are in flight besides; a gather holds those of the whole
// group and their gradients; an exchange of heads holds the
// gradients of q, k, v and of the output before and behind it, and the attention nothing else.
std::int64_t LayerBackwardBytes(const BlockShape& shape, const RankShape& rank) {
  const MemoryRules& rules = rank.rules();
  const std::int64_t mlp = BytesOf(rules.mlp, shape, rank);
  std::int64_t attention = BytesOf(rules.attention, shape, rank);
  if (rank.cp > 1 && rank.settings->context_parallel == ContextParallel::kRing) {
    attention += 4 * rank.element_bytes * rank.tokens * rank.kv;
  } else if (rank.cp > 1 && rank.settings->context_parallel == ContextParallel::kAllGather) {
    attention += 4 * rank.element_bytes * rank.tokens * rank.cp * rank.kv;
  } else if (rank.cp > 1) {
    const std::int64_t exchanged = 2 * rank.element_bytes * rank.tokens * (rank.qkv() + rank.query);
    attention = std::max(attention, exchanged);
  }
  return std::max(mlp, attention);
}

// Forward of one layer that keeps nothing: the tensors of its MLP or of its attention.
std::int64_t LayerForwardBytes(const RankShape& rank) {
  const std::int64_t sharded = rank.element_bytes * rank.sharded_tokens * rank.hidden;
  const std::int64_t mlp = rank.element_bytes * rank.tokens * (rank.fc1 + rank.ffn);
  const std::int64_t attention = rank.element_bytes * rank.tokens * (rank.qkv() + rank.query);
  return 2 * sharded + GatheredBytes(rank) + std::max(mlp, attention);
}

// The loss: the input gathered again and its gradient beside the logits; behind the loss the 16-bit
// gradient of the logits with the placeholder of the head's weight gradient, if that is more.
std::int64_t HeadBackwardBytes(const BlockShape& shape, const RankShape& rank) {
  const MemoryRules& rules = rank.rules();
  const std::int64_t whole = rank.element_bytes * rank.tokens * rank.hidden;
  const std::int64_t beside =
      rules.computes_head_gradient_beside_loss ? GatheredBytes(rank) + whole : 0;
  const bool keeps = rules.keeps_head_placeholder && rank.layer_weights;
  const std::int64_t placeholder = keeps ? 2 * rank.vocabulary * rank.hidden : 0;
  const std::int64_t behind = 2 * rank.tokens * rank.vocabulary + placeholder;
  return beside + std::max<std::int64_t>(0, behind - LogitBytes(shape).value());
}

Transient BackwardTransient(const BlockShape& shape, const RankShape& rank) {
  Transient most{.moment = MemoryMoment::kTurn};
  const auto consider = [&](std::int64_t bytes, MemoryMoment moment) {
    if (bytes > most.bytes.value()) most = {base::Bytes(bytes), moment};
  };
  // At the head all logits are there, at the layers they are gone, but the ledger keeps them.
  const std::int64_t logits = LogitBytes(shape).value();
  if (shape.block.head) {
    most.moment = MemoryMoment::kLoss;
    consider(HeadBackwardBytes(shape, rank), MemoryMoment::kLoss);
  }
  if (shape.block.num_layers > 0 && rank.layers_run_backward) {
    // Selective recompute holds one layer's attention core again.
    const std::int64_t again = LayerContextBytes(rank, false) - LayerContextBytes(rank, true);
    const MemoryMoment moment =
        RecomputedLayers(shape) > 0 ? MemoryMoment::kRecompute : MemoryMoment::kTurn;
    if (!shape.block.head) most.moment = moment;
    consider(LayerBackwardBytes(shape, rank) + again - logits, moment);
  }
  if (shape.block.stem && rank.decoder && rank.layer_weights) {
    // The embedding's gradient comes when the layers' contexts are gone.
    const std::int64_t embedding = rank.element_bytes * rank.vocabulary * rank.hidden;
    consider(embedding - ContextBytes(shape).value() - logits, MemoryMoment::kEndOfBackward);
  }
  return most;
}

}  // namespace

std::int64_t SavedBytes(const RankShape& rank, const SavedTensor& tensor) {
  if (!IsThere(rank, tensor.when)) return 0;
  const bool divided = tensor.split == SavedSplit::kTensorParallel ||
                       (tensor.split == SavedSplit::kSequenceParallel && rank.sequence_parallel);
  const std::int64_t bytes_per_element =
      tensor.widens ? rank.Widen(tensor.bytes_per_element) : tensor.bytes_per_element;
  const std::int64_t bytes = rank.tokens * WidthOf(rank, tensor.width) * bytes_per_element;
  return divided ? CeilDivide(bytes, rank.tp) : bytes;
}

std::int64_t LayerContextBytes(const RankShape& rank, bool after_selective) {
  const bool selective = after_selective && rank.settings->recompute == Recompute::kSelective;
  std::int64_t bytes = 0;
  for (const SavedTensor& tensor : TableOf(rank).tensors) {
    if (selective && tensor.by == SavedBy::kAttentionCore) continue;
    bytes += SavedBytes(rank, tensor);
  }
  return bytes;
}

Transient TransientOf(const BlockShape& shape, const RankShape& rank, Action action) {
  switch (action) {
    case Action::kForward: {
      const bool keeps = rank.layers_run_backward && RecomputedLayers(shape) == 0;
      const bool gathers_only = shape.block.num_layers == 0 || keeps;
      return {base::Bytes(gathers_only ? GatheredBytes(rank) : LayerForwardBytes(rank)),
              MemoryMoment::kForward};
    }
    case Action::kRecompute:
      return {base::Bytes(GatheredBytes(rank)), MemoryMoment::kRecompute};
    case Action::kBackward:
    case Action::kBackwardInput:
      return BackwardTransient(shape, rank);
    case Action::kBackwardWeight:
      return {base::Bytes(GatheredBytes(rank)), MemoryMoment::kTurn};
  }
  return {};
}

}  // namespace isthmus::plan::internal
