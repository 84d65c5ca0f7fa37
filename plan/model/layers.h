#pragma once

#include <cstdint>

#include "plan/model/kernel.h"
#include "plan/model/module.h"
#include "plan/program/op.h"

/// Layers as data: which kernels, inner collectives, saved tensors and parameters a block of layers
/// has on one rank (modelling_runs §4, modelling_mimo §2.2, modelling_memory §2).
namespace isthmus::plan {

/// A block of a module's layers on one rank.
struct Block {
  int num_layers = 0;
  bool stem = false;       // patch or token embedding in front
  bool projector = false;  // behind (encoder side) or in front (LLM side)
  bool head = false;       // final norm, LM head and loss behind
};

/// Everything the shapes of a block depend on.
struct BlockShape {
  const Module* module = nullptr;
  Block block;
  int tp = 1;
  int cp = 1;
  std::int64_t tokens = 0;   // of the tp×cp group's samples on one tp group, NOT divided by tp, but
                             // already divided by cp where the module's tokens are
  std::int64_t span = 0;     // tokens that attend to each other before cp divides them
  std::int64_t projector_in = 0;   // widths of the projector of this block, 0 without
  std::int64_t projector_out = 0;
  bool needs_input_gradient = true;   // backward only
  bool needs_weight_gradient = true;  // backward only
};

/// Kernels and inner collectives of `action` on the block. Backward of a recomputed block does NOT
/// contain the recomputation: that is the Recompute action's work.
Work DescribeWork(const BlockShape& shape, Action action);

/// Bytes a forward (or recompute) saves for the backward of the block on this rank.
base::Bytes ContextBytes(const BlockShape& shape);
/// Bytes kept instead of a context when the block is fully recomputed: its layers' inputs.
base::Bytes CheckpointBytes(const BlockShape& shape);
/// Bytes of the activation a block hands to the next one (hidden·tokens/tp under sequence parallelism).
base::Bytes ActivationBytes(const BlockShape& shape);
/// Bytes of the logits and loss buffers alive between forward and backward of a head.
base::Bytes LogitBytes(const BlockShape& shape);
/// Parameters of the block on one rank (divided by tp where they are).
std::int64_t RankParameters(const BlockShape& shape);
/// Parameters of the block that are replicated over tp (norms, row-parallel biases), whose gradients
/// are summed over tp under sequence parallelism.
std::int64_t ReplicatedParameters(const BlockShape& shape);
/// Optimizer work: zero, norm, clip or step over `owned` parameters of `held` on this rank.
Work DescribeOptimizerWork(const ModuleSettings& settings, std::int64_t held, std::int64_t owned,
                           OptimizerAction action);

}  // namespace isthmus::plan
