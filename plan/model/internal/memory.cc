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
    case SavedWidth::kQkv:
      return rank.qkv() * rank.tp;  // replicated kv heads count on every rank
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
  }
  return false;
}

// The buffer of a gathered input or gradient; 0 when nothing is gathered.
std::int64_t GatheredBytes(const RankShape& rank) {
  return rank.sequence_parallel ? rank.element_bytes * rank.tokens * rank.hidden : 0;
}

// Backward of one layer: in the MLP dY, its gathered copy, the gradient of FC1's output and the
// residual's; in the attention dY, its gathered copy, q, k, v gradients twice (attention's and
// rotary's). With a ring two blocks of K and V are in flight besides.
std::int64_t LayerBackwardBytes(const RankShape& rank) {
  const std::int64_t sharded = rank.element_bytes * rank.sharded_tokens * rank.hidden;
  const std::int64_t gathered = GatheredBytes(rank);
  const std::int64_t mlp = 2 * sharded + gathered + rank.element_bytes * rank.tokens * rank.fc1;
  const std::int64_t ring = rank.cp > 1 ? 4 * rank.element_bytes * rank.tokens * rank.kv : 0;
  const std::int64_t attention =
      sharded + gathered + 2 * rank.element_bytes * rank.tokens * rank.qkv() + ring;
  return std::max(mlp, attention);
}

// Forward of one layer that keeps nothing: the tensors of its MLP or of its attention.
std::int64_t LayerForwardBytes(const RankShape& rank) {
  const std::int64_t sharded = rank.element_bytes * rank.sharded_tokens * rank.hidden;
  const std::int64_t mlp = rank.element_bytes * rank.tokens * (rank.fc1 + rank.ffn);
  const std::int64_t attention = rank.element_bytes * rank.tokens * (rank.qkv() + rank.query);
  return 2 * sharded + GatheredBytes(rank) + std::max(mlp, attention);
}

// The head's backward: gathered input, whole dX, and the 16-bit placeholder of its weight gradient.
std::int64_t HeadBackwardBytes(const RankShape& rank) {
  const std::int64_t whole = rank.element_bytes * rank.tokens * rank.hidden;
  const std::int64_t placeholder = rank.layer_weights ? 2 * rank.vocabulary * rank.hidden : 0;
  return GatheredBytes(rank) + whole + placeholder;
}

std::int64_t BackwardBytes(const BlockShape& shape, const RankShape& rank) {
  std::int64_t most = 0;
  if (shape.block.num_layers > 0 && rank.layers_run_backward) {
    most = LayerBackwardBytes(rank);
    // Selective recompute holds one layer's attention core again.
    most += LayerContextBytes(rank, false) - LayerContextBytes(rank, true);
  }
  if (shape.block.head) {
    // At the head all logits are there, at the layers they are gone, but the ledger keeps them.
    most = std::max(HeadBackwardBytes(rank), most - LogitBytes(shape).value());
  }
  if (shape.block.stem && rank.decoder && rank.layer_weights) {
    // The embedding's gradient comes when the layers' contexts are gone.
    const std::int64_t embedding = rank.element_bytes * rank.vocabulary * rank.hidden;
    most = std::max(most, embedding - ContextBytes(shape).value());
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
  for (const SavedTensor& tensor : MegatronTransformerEngine(rank.settings->precision).tensors) {
    if (selective && tensor.by == SavedBy::kAttentionCore) continue;
    bytes += SavedBytes(rank, tensor);
  }
  return bytes;
}

std::int64_t TransientBytes(const BlockShape& shape, const RankShape& rank, Action action) {
  switch (action) {
    case Action::kForward: {
      if (shape.block.num_layers == 0) return GatheredBytes(rank);
      const bool keeps = rank.layers_run_backward && RecomputedLayers(shape) == 0;
      return keeps ? GatheredBytes(rank) : LayerForwardBytes(rank);
    }
    case Action::kRecompute:
      return GatheredBytes(rank);
    case Action::kBackward:
    case Action::kBackwardInput:
      return BackwardBytes(shape, rank);
    case Action::kBackwardWeight:
      return GatheredBytes(rank);
  }
  return 0;
}

}  // namespace isthmus::plan::internal
