#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/token_layout.h"

namespace isthmus::backend {

/// The attention core of a layer: from [tokens, q + 2k], this rank's heads of q, k and v side by
/// side, rotated and normed, to [tokens, q].
///
/// With cp > 1 the ranks meet as ModuleSettings::context_parallel says: keys and values of the
/// group are gathered (and gathered again in the backward, their gradients summed and scattered),
/// go round a ring (with their gradients in the backward), or tokens are exchanged for heads. Under
/// selective recomputation the backward runs the forward first, exchanges included.
at::Tensor Attention(const ModuleRank& rank, const TokenLayout& layout, const at::Tensor& qkv);

}  // namespace isthmus::backend
