#include "backend/torch/modules/hidden_norm.h"

namespace isthmus::backend {

HiddenNorm::HiddenNorm(const ModuleRank& rank, ParameterList& parameters, const std::string& name) {
  const std::int64_t hidden = rank.transformer().hidden;
  const auto add = [&](const char* part) {
    return &parameters.AddReplicated(name + part, {hidden}, rank.sequence_parallel);
  };
  scale_ = add(".scale");
  if (!rank.transformer().gated_mlp) shift_ = add(".shift");
}

at::Tensor HiddenNorm::Forward(const ModuleRank& rank, const at::Tensor& x) const {
  return shift_ == nullptr ? RmsNorm(rank, *scale_, x) : LayerNorm(rank, *scale_, *shift_, x);
}

}  // namespace isthmus::backend
