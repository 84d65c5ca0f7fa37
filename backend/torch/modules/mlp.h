#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"

namespace isthmus::backend {

/// GELU by its tanh approximation, as Megatron's fused kernel has it.
at::Tensor Gelu(const at::Tensor& x);

/// SiLU(gate) · up of [tokens, gate | up].
at::Tensor GatedSilu(const at::Tensor& gate_and_up);

}  // namespace isthmus::backend
