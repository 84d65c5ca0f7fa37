#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/token_layout.h"

namespace isthmus::backend {

/// Base of the angles, as Su et al. (2021) have it: pair i of a head of d turns by position ·
/// base^(−2i/d).
inline constexpr double kRotaryBase = 10000.0;

/// Rotary embedding of the heads in the first `rotated` columns of x (q and k, in front of v): the
/// two halves of a head are the pairs. Positions are those of tokens within their sequence; of
/// encoders, within their span.
at::Tensor Rotate(const ModuleRank& rank, const TokenLayout& layout, const at::Tensor& x,
                  std::int64_t rotated);

}  // namespace isthmus::backend
