#pragma once

#include <string>

#include "backend/torch/modules/norm.h"
#include "backend/torch/modules/parameter_list.h"

namespace isthmus::backend {

/// A norm over the hidden width of a module with its parameters: RMSNorm where the MLP is gated,
/// else LayerNorm.
class HiddenNorm {
 public:
  HiddenNorm(const ModuleRank& rank, ParameterList& parameters, const std::string& name);
  at::Tensor Forward(const ModuleRank& rank, const at::Tensor& x) const;

 private:
  Parameter* scale_ = nullptr;
  Parameter* shift_ = nullptr;  // LayerNorm
};

}  // namespace isthmus::backend
