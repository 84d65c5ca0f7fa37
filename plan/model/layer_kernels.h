#pragma once

#include <cstdint>
#include <span>

#include "plan/model/kernel.h"

/// What runs between the matrix products of a transformer layer, as data: one table per kind of
/// code, one row per kernel (modelling_runs §4). Products, attention and collectives are the same
/// for all; docs/models/layers.md has the tables.
namespace isthmus::plan {

/// Where in a layer a kernel runs. A layer has two norms and two residual additions.
enum class LayerSlot : std::uint8_t {
  kNorm,
  kRotary,           // between QKV and attention: QK-norm, rotary, layout copies
  kAttentionOutput,  // between attention and the output projection
  kResidual,         // bias, dropout and addition behind a row-parallel product
  kActivation,
};

enum class LayerDirection : std::uint8_t { kForward, kBackward };

/// Elements per token; on a rank all but the hidden width are divided by tp.
enum class LayerWidth : std::uint8_t {
  kHidden,   // h, of every token
  kSharded,  // h, of the rank's share of the tokens under sequence parallelism
  kQuery,    // heads · head_dim
  kRotated,  // (heads + kv_heads) · head_dim
  kQkv,      // (heads + 2 · kv_heads) · head_dim
  kFfn,
  kFc1,  // ffn, twice that when gated
};

/// When a row counts.
enum class LayerWhen : std::uint8_t {
  kAlways,
  kGated,
  kPlain,
  kRotary,
  kQkNorm,
  kHiddenDropout,
  kFp8,
};

struct LayerKernel {
  LayerSlot slot = LayerSlot::kNorm;
  LayerDirection direction = LayerDirection::kForward;
  MemoryClass memory_class = MemoryClass::kElementwise;
  std::int64_t bytes_per_element = 0;  // reads plus writes, with activations of 2 bytes
  LayerWidth width = LayerWidth::kHidden;
  int launches = 1;  // 0: traffic that the kernel of the row before has besides
  LayerWhen when = LayerWhen::kAlways;
  bool widens = true;  // twice the bytes in fp32; masks and fp8 copies don't
};

/// Rows of a slot and direction run in their order.
struct LayerKernelTable {
  const char* name = "";
  std::span<const LayerKernel> kernels;
  /// The weight gradient is added to the main gradient inside its product. Else the product writes
  /// 16 bit, and a kernel of its own reads that and adds it.
  bool fuses_gradient_accumulation = true;
};

/// Megatron-Core with Transformer Engine, and the Megatron-LM of 2022 with apex: everything fused.
const LayerKernelTable& FusedLayerKernels();
/// Megatron-Core whose configuration turns no fusion on: norms and rotary are kernels of
/// Transformer Engine, bias, dropout, residual and activation run one by one.
const LayerKernelTable& UnfusedLayerKernels();
/// nanotron, and Megatron-type code with a kernel for the norm only: rotary and gated activation op
/// by op, in fp32 where the code says so.
const LayerKernelTable& EagerLayerKernels();
/// The same with the norm op by op too.
const LayerKernelTable& EagerNormLayerKernels();

}  // namespace isthmus::plan
