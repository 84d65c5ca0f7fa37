#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"

namespace isthmus::backend {

inline constexpr double kNormEpsilon = 1e-5;

/// Norms over the last dimension, statistics in ModuleRank::statistics; gradients of scale and
/// shift are added to their main gradients.
///
/// y = (x − mean) / √(variance + ε) · scale + shift, or without shift RMSNorm's x / √(mean(x²) + ε)
/// · scale.
at::Tensor LayerNorm(const ModuleRank& rank, Parameter& scale, Parameter& shift,
                     const at::Tensor& x);
at::Tensor RmsNorm(const ModuleRank& rank, Parameter& scale, const at::Tensor& x);

/// RMSNorm of the first `normed` columns of x in groups of `width`, without a scale: QK-norm over
/// the heads of q and k in front of v.
at::Tensor HeadNorm(const ModuleRank& rank, const at::Tensor& x, std::int64_t normed,
                    std::int64_t width);

}  // namespace isthmus::backend
