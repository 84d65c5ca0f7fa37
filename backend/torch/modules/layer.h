#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/hidden_norm.h"
#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/parameter_list.h"
#include "backend/torch/modules/token_layout.h"

namespace isthmus::backend {

/// A pre-norm transformer layer: x + proj(attention(norm(x))), then x +
/// fc2(activation(fc1(norm(x)))).
///
/// RMSNorm and gated SiLU where the model's MLP is gated, else LayerNorm and GELU (tanh). Lifetime:
/// `rank` outlives it and the graphs that Forward() makes.
class Layer {
 public:
  Layer(const ModuleRank& rank, int layer, bool frozen);

  at::Tensor Forward(const at::Tensor& x, const TokenLayout& layout);
  ParameterList& parameters() { return parameters_; }

 private:
  at::Tensor Attend(const at::Tensor& x, const TokenLayout& layout);
  at::Tensor Mlp(const at::Tensor& x);

  const ModuleRank& rank_;
  ParameterList parameters_;
  HiddenNorm norm1_;
  Parameter& qkv_;
  Parameter& projection_;
  HiddenNorm norm2_;
  Parameter& fc1_;
  Parameter& fc2_;
};

}  // namespace isthmus::backend
