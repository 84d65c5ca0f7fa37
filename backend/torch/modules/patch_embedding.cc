#include "backend/torch/modules/patch_embedding.h"

#include <algorithm>

#include "backend/torch/modules/differentiable.h"
#include "backend/torch/modules/linear.h"
#include "backend/torch/modules/token_shards.h"

namespace isthmus::backend {

PatchEmbedding::PatchEmbedding(const ModuleRank& rank, bool frozen)
    : rank_(rank),
      parameters_(rank.module->name + ".", frozen),
      patches_(parameters_.AddReplicated(
          "patches", {rank.transformer().hidden, rank.module->input_width}, false)) {
  const plan::Transformer& t = rank.transformer();
  if (t.rotary) return;
  const std::int64_t positions = std::max(t.max_positions, rank.module->span_tokens);
  positions_ = &parameters_.AddReplicated("positions", {positions, t.hidden}, false);
}

at::Tensor PatchEmbedding::Forward(const at::Tensor& patches, const TokenLayout& layout) {
  const at::Tensor input = patches.to(rank_.device, rank_.dtype);
  const at::Tensor within =
      ToTensor(layout.PositionsOf(rank_.cp->index()), rank_.device).remainder(layout.span);
  at::Tensor own;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor whole = input.mm(patches_.weight.t());
    own = rank_.sequence_parallel ? OwnTokens(rank_, whole).clone() : whole;
    if (positions_ != nullptr) {
      own.add_(positions_->weight.index_select(0, OwnTokens(rank_, within)));
    }
  }
  return Differentiable(own, {rank_.AnchorOf(patches_)}, [=, this](const at::Tensor& gradient) {
    const at::Tensor whole = AllTokens(rank_, gradient);
    AccumulateProduct(patches_, whole, input);
    if (positions_ != nullptr) {
      const at::Tensor& sum = positions_->main_gradient;
      sum.index_add_(0, within, whole.to(sum.scalar_type()));
    }
    return std::vector<at::Tensor>{at::Tensor()};
  });
}

}  // namespace isthmus::backend
