#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/hidden_norm.h"
#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/parameter_list.h"
#include "backend/torch/modules/token_layout.h"

namespace isthmus::backend {

/// The end of a decoder: final norm, vocabulary-parallel head, cross entropy summed over the rank's
/// valid tokens. Lifetime: as Layer's.
class Head {
 public:
  /// `table`: the embedding of a tied model on the same stage; null: weights of its own.
  Head(const ModuleRank& rank, bool frozen, Parameter* table);

  at::Tensor Forward(const at::Tensor& x, const BlockData& data, const TokenLayout& layout);
  ParameterList& parameters() { return parameters_; }

 private:
  const ModuleRank& rank_;
  ParameterList parameters_;
  HiddenNorm norm_;
  Parameter& weight_;
};

}  // namespace isthmus::backend
