#include <vector>

#include "plan/model/internal/pieces.h"

// One transformer layer, forward and backward: the rows of modelling_runs §4's table in the order
// they run. Bytes are those of bf16 activations; Widen() scales them for fp32.
namespace isthmus::plan::internal {
namespace {

constexpr LinearNames kQkv{"qkv",       "qkv gather",      "qkv dgrad", "qkv dgrad scatter",
                           "qkv wgrad", "qkv wgrad gather"};
constexpr LinearNames kProj{"proj", "proj scatter", "proj dgrad", "proj dgrad gather", "proj wgrad",
                            ""};
constexpr LinearNames kFc1{"fc1",       "fc1 gather",      "fc1 dgrad", "fc1 dgrad scatter",
                           "fc1 wgrad", "fc1 wgrad gather"};
constexpr LinearNames kFc2{"fc2", "fc2 scatter", "fc2 dgrad", "fc2 dgrad gather", "fc2 wgrad", ""};

// fp8: a cast with transpose reads 2 B and writes two copies of 1 B.
void AddCast(const RankShape& rank, std::int64_t elements, std::vector<Kernel>& kernels) {
  if (!rank.in_fp8_run()) return;
  kernels.push_back(Moves(MemoryClass::kCast, 4 * elements));
}

void AddNorm(const RankShape& rank, const char* name, SegmentList& list) {
  const std::int64_t elements = rank.sharded_tokens * rank.hidden;
  std::vector<Kernel> kernels{Moves(MemoryClass::kNorm, rank.Widen(4 * elements))};
  AddCast(rank, elements, kernels);
  list.Compute(name, std::move(kernels));
}

void AddNormBackward(const RankShape& rank, const char* name, SegmentList& list) {
  const std::int64_t elements = rank.sharded_tokens * rank.hidden;
  list.Compute(name, {Moves(MemoryClass::kNormBackward, rank.Widen(6 * elements))});
}

// Residual add, fused with bias and dropout; a mask is a byte an element, written or read.
std::int64_t ResidualBytes(const RankShape& rank) {
  const std::int64_t elements = rank.sharded_tokens * rank.hidden;
  const std::int64_t mask = rank.transformer->hidden_dropout > 0.0 ? elements : 0;
  return rank.Widen(6 * elements) + mask;
}

void AddResidual(const RankShape& rank, const char* name, SegmentList& list) {
  list.Compute(name, {Moves(MemoryClass::kElementwise, ResidualBytes(rank))});
}

// In the backward also the cast of the gradient that enters the row-parallel GEMMs.
void AddResidualBackward(const RankShape& rank, const char* name, SegmentList& list) {
  std::vector<Kernel> kernels{Moves(MemoryClass::kElementwise, ResidualBytes(rank))};
  AddCast(rank, rank.tokens * rank.hidden, kernels);
  list.Compute(name, std::move(kernels));
}

// Rotary of q and k, and the copy that lays q (backward: q, k, v) out for the attention kernel.
void AddRotary(const RankShape& rank, bool backward, SegmentList& list) {
  const std::int64_t turned = rank.transformer->rotary ? rank.query + rank.kv : 0;
  const std::int64_t copied = backward ? rank.qkv() : rank.query;
  std::vector<Kernel> kernels{
      Moves(MemoryClass::kElementwise, rank.Widen(4 * rank.tokens * (turned + copied)))};
  if (backward) AddCast(rank, rank.tokens * rank.qkv(), kernels);
  list.Compute(backward ? "rotary backward" : "rotary", std::move(kernels));
}

void AddActivation(const RankShape& rank, SegmentList& list) {
  const std::int64_t width = rank.transformer->gated_mlp ? 6 : 4;
  std::vector<Kernel> kernels{
      Moves(MemoryClass::kElementwise, rank.Widen(width * rank.tokens * rank.ffn))};
  AddCast(rank, rank.tokens * rank.ffn, kernels);
  list.Compute("activation", std::move(kernels));
}

void AddActivationBackward(const RankShape& rank, SegmentList& list) {
  const std::int64_t width = rank.transformer->gated_mlp ? 10 : 6;
  std::vector<Kernel> kernels{
      Moves(MemoryClass::kElementwise, rank.Widen(width * rank.tokens * rank.ffn))};
  AddCast(rank, rank.tokens * rank.fc1, kernels);
  list.Compute("activation backward", std::move(kernels));
}

Linear LayerLinear(const RankShape& rank, const LinearNames& names, std::int64_t in,
                   std::int64_t out) {
  return {names, rank.tokens, in, out, rank.settings->precision, true};
}

}  // namespace

Linear QkvLinear(const RankShape& rank) { return LayerLinear(rank, kQkv, rank.hidden, rank.qkv()); }
Linear OutputLinear(const RankShape& rank) {
  return LayerLinear(rank, kProj, rank.query, rank.hidden);
}
Linear Fc1Linear(const RankShape& rank) { return LayerLinear(rank, kFc1, rank.hidden, rank.fc1); }
Linear Fc2Linear(const RankShape& rank) { return LayerLinear(rank, kFc2, rank.ffn, rank.hidden); }

void AddLayerForward(const RankShape& rank, SegmentList& list) {
  AddNorm(rank, "norm 1", list);
  AddColumnForward(rank, QkvLinear(rank), list);
  AddRotary(rank, false, list);
  AddAttention(rank, AttentionPass::kForward, list);
  if (rank.in_fp8_run()) {
    list.Compute("proj cast", {Moves(MemoryClass::kCast, 4 * rank.tokens * rank.query)});
  }
  AddRowForward(rank, OutputLinear(rank), list);
  AddResidual(rank, "residual 1", list);
  AddNorm(rank, "norm 2", list);
  AddColumnForward(rank, Fc1Linear(rank), list);
  AddActivation(rank, list);
  AddRowForward(rank, Fc2Linear(rank), list);
  AddResidual(rank, "residual 2", list);
}

void AddLayerBackward(const RankShape& rank, Pass pass, SegmentList& list) {
  // Everything that isn't a weight gradient is on the way of the input gradient; the scales of the
  // norms come out of their backward, so they too are computed there.
  if (pass.input) AddResidualBackward(rank, "residual 2 backward", list);
  AddRowBackward(rank, Fc2Linear(rank), pass, list);
  if (pass.input) AddActivationBackward(rank, list);
  AddColumnBackward(rank, Fc1Linear(rank), pass, list);
  if (pass.input) {
    AddNormBackward(rank, "norm 2 backward", list);
    AddResidualBackward(rank, "residual 1 backward", list);
  }
  AddRowBackward(rank, OutputLinear(rank), pass, list);
  if (pass.input) {
    if (rank.settings->recompute == Recompute::kSelective) {
      AddAttention(rank, AttentionPass::kRecompute, list);
    }
    AddAttention(rank, AttentionPass::kBackward, list);
    AddRotary(rank, true, list);
  }
  AddColumnBackward(rank, QkvLinear(rank), pass, list);
  if (pass.input) AddNormBackward(rank, "norm 1 backward", list);
}

}  // namespace isthmus::plan::internal
