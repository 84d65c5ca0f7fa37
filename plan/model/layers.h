#pragma once

#include <cstdint>
#include <optional>

#include "plan/model/kernel.h"
#include "plan/model/module.h"
#include "plan/program/op.h"

/// Layers as data: which kernels, inner collectives, saved tensors and parameters a block of layers
/// has on one rank (modelling_runs §4, modelling_mimo §2.2, modelling_memory §2). The formulas are
/// in docs/models/layers.md and docs/models/memory.md.
namespace isthmus::plan {

/// A block of a module's layers on one rank. Order in the forward: LLM-side projector, stem,
/// layers, encoder-side projector, head.
struct Block {
  int num_layers = 0;
  bool stem = false;       // patch or token embedding in front
  bool projector = false;  // behind (encoder side) or in front (LLM side)
  bool head = false;       // final norm, LM head and loss behind
  /// The head of a tied module on the rank that also holds the embedding: it has no weights of its
  /// own. A block with both stem and head needs no flag.
  bool head_shares_stem = false;
};

/// Everything the shapes of a block depend on.
struct BlockShape {
  const Module* module = nullptr;
  Block block;
  int tp = 1;
  int cp = 1;  // 1 where the module's tokens are not divided by cp (homogeneous encoders)
  std::int64_t tokens = 0;  // of the tp×cp group's samples on one tp group, NOT divided by tp, but
                            // already divided by cp where the module's tokens are
  std::int64_t span = 0;    // tokens that attend to each other before cp divides them; 0: all
  std::int64_t projector_in = 0;  // widths of the projector of this block, 0 without
  std::int64_t projector_out = 0;
  std::optional<std::int64_t> projector_tokens;  // tokens it maps; absent: `tokens`
  const Projector* projector = nullptr;          // null: the module's own, else one linear layer
  /// Whether the gradient of the block's input, and of the layers' weights, is needed by anybody.
  /// A projector's own weights follow Projector::frozen.
  bool needs_input_gradient = true;
  bool needs_weight_gradient = true;
  /// kFull recompute: how many of this block's layers are recomputed. Absent: all, or the module's
  /// `recompute_layers` when that is less.
  std::optional<int> recomputed_layers;
};

/// Kernels and inner collectives of `action` on the block.
///
/// kBackward does NOT contain full recomputation: that is kRecompute's work, the forward of the
/// recomputed layers. It does contain selective recomputation (attention core). kBackwardInput and
/// kBackwardWeight have the kernels of kBackward between them, each once; the collectives too.
/// What nobody needs the gradient of is left out. No work at all: zero tokens, or the backward of a
/// module with BackwardMode::kAbsent.
/// model_flops: forward 2·parameters·tokens plus attention (half when causal), backward once for
/// the inputs and once for the weights; padding and recomputation count in hardware_flops only.
/// Cost: microseconds, one allocation per segment.
Work DescribeWork(const BlockShape& shape, Action action);

/// Bytes a forward saves for the backward of the block on this rank when nothing is fully
/// recomputed: all layers, stem, projector and head (without logits). 0 when no backward follows.
base::Bytes ContextBytes(const BlockShape& shape);
/// Bytes a forward keeps instead when the module is fully recomputed: the inputs of the recomputed
/// layers, and the context of everything else in the block.
base::Bytes CheckpointBytes(const BlockShape& shape);
/// Bytes of the activation a block hands to the next one (hidden·tokens/tp under sequence
/// parallelism); behind an encoder-side projector the whole boundary tensor.
base::Bytes ActivationBytes(const BlockShape& shape);
/// Bytes of the logits and loss buffers alive between forward and backward of a head.
base::Bytes LogitBytes(const BlockShape& shape);
/// Bytes of the gradient of the logits that a head's later weight gradient needs.
base::Bytes LogitGradientBytes(const BlockShape& shape);
/// 16-bit weight-gradient placeholders that Transformer Engine keeps for good, one per distinct
/// weight shape: 2 B × matrix parameters of ONE layer / tp, once per rank and trained module. The
/// head's is part of its backward's transient bytes. 0 where the framework keeps none.
base::Bytes PlaceholderBytes(const BlockShape& shape);
/// fp8: copies of the weights beside the primary ones. 2 B for each parameter of the layers'
/// matrices where those are 16 bit; with fp8_primary_weights what makes 2 B of every parameter.
base::Bytes WeightCopyBytes(const BlockShape& shape);

/// What an action needs for a moment beyond inputs, outputs and context (modelling_memory §4), and
/// which moment of a step that is: DescribeWork's, without describing the work.
struct Transient {
  base::Bytes bytes{0};
  MemoryMoment moment = MemoryMoment::kForward;
};
Transient TransientOf(const BlockShape& shape, Action action);

/// Parameters of the block on one rank (divided by tp where they are; vocabulary padded).
std::int64_t RankParameters(const BlockShape& shape);
/// Parameters of the block that are replicated over tp and see only their part of the tokens under
/// sequence parallelism, so that their gradients are summed over tp: the norms.
std::int64_t ReplicatedParameters(const BlockShape& shape);
/// vocab_size rounded up to a multiple of 128·tp, as Megatron does, or of the framework's own.
std::int64_t PaddedVocabulary(std::int64_t vocab_size, int tp, int vocabulary_multiple = 128);

/// Adam's state of one parameter: two moments and a master copy in fp32; with fp32 or fp64 working
/// weights two moments of their type and no copy.
base::Bytes OptimizerStateBytes(DType precision);
/// Optimizer work over `owned` of the `held` parameters of this rank (modelling_runs §5): zero
/// writes the held main gradients, clip scales them (or the owned ones, by framework), norm reads
/// the owned ones, check too when the precision is fp16 (loss scaling), step moves 34 B per owned
/// parameter (Adam with fp32 master).
Work DescribeOptimizerWork(const ModuleSettings& settings, std::int64_t held, std::int64_t owned,
                           OptimizerAction action);

}  // namespace isthmus::plan
