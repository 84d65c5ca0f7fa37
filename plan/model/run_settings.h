#pragma once

#include <cstdint>

/// Ways to run a module that settings and framework releases name.
namespace isthmus::plan {

/// Whether the host issues a module's kernels one by one, layer after layer, or all at once as a
/// captured graph.
enum class HostIssue : std::uint8_t { kEager, kGraph };
/// How the attention of a context-parallel ring is called: packed samples need the API for spans of
/// variable length, whose steps are slower.
enum class CpAttention : std::uint8_t { kFixedLength, kVariableLength };
enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
enum class TpOverlap : std::uint8_t { kNone, kBulk, kUserBuffers };
/// Granularity of the scales of fp8 products: one per tensor, or one per block of 128 elements.
enum class Fp8Scaling : std::uint8_t { kTensor, kBlock };
/// Absent: the encoder's backward does not run (modelling_mimo finding 2); simulation only.
enum class BackwardMode : std::uint8_t { kReal, kAbsent };
/// Which code runs the cross entropy. Bytes that it holds per logit of the rank, the logits
/// themselves included (modelling_memory §4); its traffic is 34 B per logit fused or in place, else
/// 50 B (modelling_runs §4).
enum class LossKernel : std::uint8_t {
  kFused,          // 6: Megatron's own, fused: fp32 softmax and 16-bit gradient
  kUnfused,        // 10: and 16-bit logits or the fp32 cast of the gradient
  kInPlace,        // 2: Transformer Engine: the gradient overwrites the logits
  kShiftedCopy,    // 8: nanotron: an fp32 copy and a shifted one that becomes the softmax
  kEager,          // 14: torch: log-softmax, its gradient, the input's gradient, 16-bit logits
  kGatheredEager,  // 16, of the WHOLE vocabulary: the same, and the 16-bit gradient
  kHeldOutputs,    // 20: the caller holds the logits and their fp32 copy besides
};
/// How the ranks of a context-parallel group meet in attention.
enum class ContextParallel : std::uint8_t {
  kRing,       // blocks of keys and values go round
  kAllGather,  // keys and values are gathered before attention (Llama 3)
  kAllToAll,   // sequences are exchanged for heads before attention, and back behind it
};

}  // namespace isthmus::plan
