#pragma once

#include <cstdint>
#include <span>

/// What a transformer layer saves for its backward, as data: one table per framework, release and
/// precision, one row per tensor (modelling_memory §2). The ledger sums rows; nothing else in the
/// project knows which tensors a framework keeps.
namespace isthmus::plan {

/// Elements per token of a saved tensor, before division.
enum class SavedWidth : std::uint8_t {
  kOne,
  kHidden,
  kQuery,     // heads · head_dim
  kKeyValue,  // 2 · kv_heads · head_dim
  kQkv,       // (heads + 2 · kv_heads) · head_dim
  kFfn,
  kFc1,  // ffn, twice that when gated
  kHeads,
  kHeadsTimesSpan,  // one row of the attention matrix per head
};

/// By what it is divided on a rank: nothing, tp, or tp under sequence parallelism only.
enum class SavedSplit : std::uint8_t { kWhole, kTensorParallel, kSequenceParallel };

/// When it is there.
enum class SavedWhen : std::uint8_t {
  kAlways,
  kWeightGradient,  // the input of a linear layer, saved for wgrad only: not in frozen layers
  kHiddenDropout,   // masks
  kFlash,           // not with unfused attention
  kUnfused,         // only with unfused attention
  kUnfusedDropout,  // unfused attention with dropout
  kSeveralSamples,  // more than one sample a microbatch: a change of layout copies
  kHeadExchange,    // context parallelism by exchange of heads
};

/// Which recompute rebuilds it (Recompute::kFull rebuilds all).
enum class SavedBy : std::uint8_t { kNorm, kAttentionCore, kProjections, kMlp, kResidual };

struct SavedTensor {
  const char* name = "";
  std::int64_t bytes_per_element = 0;
  SavedWidth width = SavedWidth::kOne;
  SavedSplit split = SavedSplit::kWhole;
  SavedWhen when = SavedWhen::kAlways;
  SavedBy by = SavedBy::kResidual;
  bool widens = true;  // stated for 2-byte activations: doubled in fp32. Masks, statistics: no
};

struct SavedTensorTable {
  const char* name = "";  // "megatron-te bf16"
  std::span<const SavedTensor> tensors;
};

/// Megatron-Core with Transformer Engine, fused norms, activation, rotary and bias-dropout-add:
/// within -0.4 … +0.2 % of 31 measured peaks.
extern const SavedTensorTable kTransformerEngine;
/// GEMM inputs are kept as one fp8 copy, the attention output besides its 16-bit self.
extern const SavedTensorTable kTransformerEngineFp8;
/// Megatron-LM of 2022 (Korthikanti et al.): the same tensors; unfused attention keeps 5 B a score
/// with dropout.
extern const SavedTensorTable kMegatron2022;
/// nanotron's Llama: norm outputs as gathered over tp, q pins the packed q, k, v beside a copy of k
/// and v, the SiLU's output besides the product, and a change of layout with several samples.
extern const SavedTensorTable kNanotron;
/// Eager Llama code of the A100 layout sweep (Hagemann et al.): gate, SiLU, up and product apart;
/// without a fused norm an fp32 copy, its normalised form and that in 16 bit.
extern const SavedTensorTable kEagerLlama;
extern const SavedTensorTable kEagerLlamaFusedNorm;

}  // namespace isthmus::plan
