#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"

namespace isthmus::backend {

/// Cross entropy of vocabulary-parallel logits [tokens, padded vocabulary / tp], summed over the
/// tokens where `mask` is true; equal on all ranks of tp, in the statistics' type.
///
/// −Σ (z_label − log Σ exp z): three all-reduces over tp, of the maximum, the label's logit and the
/// sum. Logits of padding count as −∞. Labels of masked tokens are not looked at.
at::Tensor CrossEntropy(const ModuleRank& rank, const at::Tensor& logits, const at::Tensor& labels,
                        const at::Tensor& mask);

}  // namespace isthmus::backend
