#pragma once

#include <cstdint>

#include "plan/model/layers.h"

namespace isthmus::plan::internal {

/// The widths one rank sees of a block's layers, and which gradients anybody needs.
///
/// modelling_runs §4's symbols: T tokens, Ts sharded_tokens, q query, k kv, f ffn, G·f fc1. Widths
/// are after division by tp; where a division leaves a rest the widest rank counts. Key-value heads
/// are replicated when there are fewer than tp.
struct RankShape {
  const Module* module = nullptr;
  const Transformer* transformer = nullptr;
  const ModuleSettings* settings = nullptr;
  int tp = 1;
  int cp = 1;
  std::int64_t tokens = 0;          // T
  std::int64_t sharded_tokens = 0;  // T/tp under sequence parallelism, else T
  std::int64_t span = 0;
  std::int64_t hidden = 0;
  std::int64_t query = 0;  // heads·head_dim/tp
  std::int64_t kv = 0;     // kv_heads·head_dim/tp, at least one head
  std::int64_t ffn = 0;
  std::int64_t fc1 = 0;                  // ffn, or twice that when gated
  std::int64_t vocabulary = 0;           // padded/tp, 0 for encoders
  std::int64_t element_bytes = 2;        // of activations: 4 in fp32, else 2
  bool sequence_parallel = false;        // only with tp > 1
  bool decoder = true;                   // causal attention, token embedding
  TpOverlap overlap = TpOverlap::kNone;  // kUserBuffers needs sequence parallelism, else kBulk

  // Gradients that somebody needs: of the layers' weights, of the layers' inputs (so that their
  // backward runs at all), of the projector's weights.
  bool layer_weights = true;
  bool layers_run_backward = true;
  bool projector_weights = false;

  bool in_fp8_run() const { return settings->precision == DType::kFp8; }
  const MemoryRules& rules() const { return *settings->framework->memory; }
  std::int64_t qkv() const { return query + 2 * kv; }
  std::int64_t heads() const { return query / transformer->head_dim; }
  std::int64_t kv_heads() const { return kv / transformer->head_dim; }
  /// Bytes that a table states for 2-byte activations, at this module's width.
  std::int64_t Widen(std::int64_t bytes) const { return bytes * element_bytes / 2; }
  bool encoder_side_projector() const { return !decoder; }
};

/// Needs a module, degrees ≥ 1, tokens ≥ 0.
RankShape ShapeOnRank(const BlockShape& shape);

/// Layers of the block that kFull recompute rebuilds, and whether they have a backward at all.
int RecomputedLayers(const BlockShape& shape);

/// The block's projector, one linear layer when nobody describes one; its tokens.
Projector ProjectorOf(const BlockShape& shape);
std::int64_t ProjectorTokens(const BlockShape& shape);

constexpr std::int64_t CeilDivide(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace isthmus::plan::internal
