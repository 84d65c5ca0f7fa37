#pragma once

#include <cstdint>

#include "plan/model/saved_tensors.h"

/// What a framework release holds, as data (modelling_memory §2-4).
namespace isthmus::plan {

/// Tensors that live beside the saved ones while the first layer of a backward runs, counted.
struct BackwardTensors {
  int sharded = 0;   // T·h/S: gradients of the layer's output and of the residual
  int gathered = 0;  // T·h under sequence parallelism, else nothing
  int whole = 0;     // T·h
  int fc1 = 0;       // T·fc1/tp
  int ffn = 0;       // T·ffn/tp
  int qkv = 0;       // T·(q + 2k)/tp
};

/// All are static and live for ever.
struct MemoryRules {
  const SavedTensorTable* saved = &kTransformerEngine;  // bf16, fp16 and (widened) fp32
  const SavedTensorTable* saved_fp8 = nullptr;          // null: the release has no fp8
  BackwardTensors mlp;
  BackwardTensors attention;
  /// A 16-bit buffer for each distinct weight shape of a layer, kept for good: Transformer Engine
  /// from 2.3 on with fused gradient accumulation. Each is read through a view by autograd only.
  bool keeps_placeholder_gradients = false;
  /// A 16-bit buffer of the head's weight gradient beside the 16-bit gradient of the logits.
  bool keeps_head_placeholder = false;
  /// The final norm's output is kept as gathered over tp.
  bool keeps_gathered_norm_outputs = false;
  /// Beside the loss: the gradient of the head's input, and its input gathered again.
  bool computes_head_gradient_beside_loss = true;
  /// The vocabulary is padded to a multiple of this · tp.
  int vocabulary_multiple = 128;
};

extern const MemoryRules kTransformerEngineRules;       // from 2.3 on
extern const MemoryRules kEarlyTransformerEngineRules;  // no placeholders
extern const MemoryRules kMegatron2022Rules;
extern const MemoryRules kNanotronRules;
extern const MemoryRules kEagerLlamaRules;
extern const MemoryRules kEagerLlamaFusedNormRules;

}  // namespace isthmus::plan
