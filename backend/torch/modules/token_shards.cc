#include "backend/torch/modules/token_shards.h"

#include <fmt/format.h>

#include "backend/torch/modules/differentiable.h"
#include "base/error.h"

namespace isthmus::backend {

at::Tensor OwnTokens(const ModuleRank& rank, const at::Tensor& whole) {
  if (!rank.sequence_parallel) return whole;
  if (whole.size(0) % rank.tp->size() != 0) {
    throw base::Error(fmt::format(
        "error: {}: tp {} does not divide {} tokens, which sequence parallelism cuts\n  hint: set "
        "sequence_parallel: false",
        rank.module->name, rank.tp->size(), whole.size(0)));
  }
  const std::int64_t own = whole.size(0) / rank.tp->size();
  return whole.narrow(0, rank.tp->index() * own, own);
}

at::Tensor AllTokens(const ModuleRank& rank, const at::Tensor& part) {
  if (!rank.sequence_parallel) return part;
  at::Tensor whole = at::empty({part.size(0) * rank.tp->size(), part.size(1)}, part.options());
  rank.tp->AllGather(whole, part.contiguous()).Wait();
  return whole;
}

namespace {

at::Tensor Gather(const ModuleRank& rank, const at::Tensor& part, const GradientRule& rule) {
  if (!rank.sequence_parallel) return part;
  at::Tensor whole;
  {
    const at::NoGradGuard no_grad;
    whole = AllTokens(rank, part.detach());
  }
  return Differentiable(whole, {part}, rule);
}

}  // namespace

at::Tensor GatherForPartial(const ModuleRank& rank, const at::Tensor& part) {
  return Gather(rank, part, [&rank](const at::Tensor& gradient) {
    at::Tensor own =
        at::empty({gradient.size(0) / rank.tp->size(), gradient.size(1)}, gradient.options());
    rank.tp->ReduceScatter(own, gradient.contiguous()).Wait();
    return std::vector<at::Tensor>{own};
  });
}

at::Tensor GatherForWhole(const ModuleRank& rank, const at::Tensor& part) {
  return Gather(rank, part, [&rank](const at::Tensor& gradient) {
    return std::vector<at::Tensor>{OwnTokens(rank, gradient).clone()};
  });
}

}  // namespace isthmus::backend
