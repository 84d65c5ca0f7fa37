#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"

/// Tokens cut over tp under sequence parallelism: tp equal contiguous parts. Without it all of
/// these give their input back.
namespace isthmus::backend {

/// Rows of this rank. Throws base::Error where tp doesn't divide them.
at::Tensor OwnTokens(const ModuleRank& rank, const at::Tensor& whole);
/// All rows, from every rank's. Not recorded.
at::Tensor AllTokens(const ModuleRank& rank, const at::Tensor& part);

/// All rows, differentiable; every rank's gradient of the whole is a partial sum (what a
/// column-parallel layer with ColumnInput::kPartial gives), and the backward scatters the sum.
at::Tensor GatherForPartial(const ModuleRank& rank, const at::Tensor& part);
/// All rows, differentiable; the gradient of the whole is equal on all ranks.
at::Tensor GatherForWhole(const ModuleRank& rank, const at::Tensor& part);

}  // namespace isthmus::backend
