#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/parameter_list.h"

namespace isthmus::backend {

/// Linear layers by turns column- and row-parallel with GELU (tanh) between them, from the width of
/// the encoder's tokens at the LLM to the LLM's; its output is whole on every rank of tp.
///
/// It is named after its encoder, whichever module runs it, so that its values don't depend on the
/// side. Lifetime: as Layer's.
class TokenProjector {
 public:
  /// `in`: width of its input, after pixel shuffle. `encoder_side`: the input comes from the
  /// encoder's layers, cut over tp under sequence parallelism.
  TokenProjector(const ModuleRank& rank, const plan::Module& encoder, std::int64_t in,
                 std::int64_t out, bool encoder_side);

  /// Encoder side: x of [tokens, hidden], thinned out to rows of `in` first.
  at::Tensor Forward(const at::Tensor& x);
  ParameterList& parameters() { return parameters_; }

 private:
  const ModuleRank& rank_;
  ParameterList parameters_;
  std::int64_t in_ = 0;
  bool encoder_side_ = false;
  std::vector<Parameter*> layers_;  // column-parallel, row-parallel, column-parallel, …
};

}  // namespace isthmus::backend
