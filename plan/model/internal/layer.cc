#include <utility>
#include <vector>

#include "plan/model/internal/pieces.h"
#include "plan/model/layer_kernels.h"

// One transformer layer, forward and backward: products, attention, and between them the kernels of
// the release's table. Its bytes are those of 16-bit activations; Widen() scales them for fp32.
namespace isthmus::plan::internal {
namespace {

constexpr LinearNames kQkv{"qkv",       "qkv gather",      "qkv dgrad", "qkv dgrad scatter",
                           "qkv wgrad", "qkv wgrad gather"};
constexpr LinearNames kProj{"proj", "proj scatter", "proj dgrad", "proj dgrad gather", "proj wgrad",
                            ""};
constexpr LinearNames kFc1{"fc1",       "fc1 gather",      "fc1 dgrad", "fc1 dgrad scatter",
                           "fc1 wgrad", "fc1 wgrad gather"};
constexpr LinearNames kFc2{"fc2", "fc2 scatter", "fc2 dgrad", "fc2 dgrad gather", "fc2 wgrad", ""};

bool IsThere(const RankShape& rank, LayerWhen when) {
  const Transformer& t = *rank.transformer;
  switch (when) {
    case LayerWhen::kAlways:
      return true;
    case LayerWhen::kGated:
      return t.gated_mlp;
    case LayerWhen::kPlain:
      return !t.gated_mlp;
    case LayerWhen::kRotary:
      return t.rotary;
    case LayerWhen::kQkNorm:
      return t.qk_norm;
    case LayerWhen::kHiddenDropout:
      return t.hidden_dropout > 0.0;
    case LayerWhen::kFp8:
      return rank.in_fp8_run();
  }
  return false;
}

std::int64_t ElementsOf(const RankShape& rank, LayerWidth width) {
  switch (width) {
    case LayerWidth::kHidden:
      return rank.tokens * rank.hidden;
    case LayerWidth::kSharded:
      return rank.sharded_tokens * rank.hidden;
    case LayerWidth::kQuery:
      return rank.tokens * rank.query;
    case LayerWidth::kRotated:
      return rank.tokens * (rank.query + rank.kv);
    case LayerWidth::kQkv:
      return rank.tokens * rank.qkv();
    case LayerWidth::kFfn:
      return rank.tokens * rank.ffn;
    case LayerWidth::kFc1:
      return rank.tokens * rank.fc1;
  }
  return 0;
}

// The kernels that the release's table has at a place, as one segment.
void AddSlot(const RankShape& rank, LayerSlot slot, LayerDirection direction, const char* name,
             SegmentList& list) {
  std::vector<Kernel> kernels;
  for (const LayerKernel& row : rank.settings->framework->kernels->kernels) {
    if (row.slot != slot || row.direction != direction || !IsThere(rank, row.when)) continue;
    const std::int64_t bytes =
        (row.widens ? rank.Widen(row.bytes_per_element) : row.bytes_per_element) *
        ElementsOf(rank, row.width);
    kernels.push_back(Moves(row.memory_class, bytes, row.launches));
  }
  list.Compute(name, std::move(kernels));
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
  using enum LayerSlot;
  const auto slot = [&](LayerSlot where, const char* name) {
    AddSlot(rank, where, LayerDirection::kForward, name, list);
  };
  slot(kNorm, "norm 1");
  AddColumnForward(rank, QkvLinear(rank), list);
  slot(kRotary, "rotary");
  AddAttention(rank, AttentionPass::kForward, list);
  slot(kAttentionOutput, "proj cast");
  AddRowForward(rank, OutputLinear(rank), list);
  slot(kResidual, "residual 1");
  slot(kNorm, "norm 2");
  AddColumnForward(rank, Fc1Linear(rank), list);
  slot(kActivation, "activation");
  AddRowForward(rank, Fc2Linear(rank), list);
  slot(kResidual, "residual 2");
}

void AddLayerBackward(const RankShape& rank, Pass pass, SegmentList& list) {
  using enum LayerSlot;
  // Everything that isn't a weight gradient is on the way of the input gradient; the scales of the
  // norms come out of their backward, so they too are computed there.
  const auto slot = [&](LayerSlot where, const char* name) {
    if (pass.input) AddSlot(rank, where, LayerDirection::kBackward, name, list);
  };
  slot(kResidual, "residual 2 backward");
  AddRowBackward(rank, Fc2Linear(rank), pass, list);
  slot(kActivation, "activation backward");
  AddColumnBackward(rank, Fc1Linear(rank), pass, list);
  slot(kNorm, "norm 2 backward");
  slot(kResidual, "residual 1 backward");
  AddRowBackward(rank, OutputLinear(rank), pass, list);
  slot(kAttentionOutput, "attention output backward");
  if (pass.input) {
    if (rank.settings->recompute == Recompute::kSelective) {
      AddAttention(rank, AttentionPass::kRecompute, list);
    }
    AddAttention(rank, AttentionPass::kBackward, list);
  }
  slot(kRotary, "rotary backward");
  AddColumnBackward(rank, QkvLinear(rank), pass, list);
  slot(kNorm, "norm 1 backward");
}

}  // namespace isthmus::plan::internal
