#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/parameter_list.h"
#include "backend/torch/modules/token_layout.h"

namespace isthmus::backend {

/// The stem of an encoder: a linear layer from patches (or audio features) to the hidden width, and
/// a learned position for every token of a span unless the model is rotary.
///
/// Patches are whole on every rank of tp, which runs the whole product and keeps its own tokens;
/// the backward gathers the gradient. Lifetime: as Layer's.
class PatchEmbedding {
 public:
  PatchEmbedding(const ModuleRank& rank, bool frozen);

  at::Tensor Forward(const at::Tensor& patches, const TokenLayout& layout);
  ParameterList& parameters() { return parameters_; }

 private:
  const ModuleRank& rank_;
  ParameterList parameters_;
  Parameter& patches_;
  Parameter* positions_ = nullptr;
};

}  // namespace isthmus::backend
