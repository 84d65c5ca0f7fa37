#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace isthmus::backend {

/// Gradients of a function's inputs, in their order, from the gradient of its output; undefined
/// where none is needed. Runs without recording.
using GradientRule = std::function<std::vector<at::Tensor>(const at::Tensor& output_gradient)>;

/// `output`, computed from `inputs` without recording, as a differentiable function of them.
///
/// When nothing is recorded, or no input requires a gradient, that is `output` itself and the rule
/// is dropped. The rule, with all that it holds, is freed after the backward. Inputs may be
/// undefined. Needs an output that shares no storage with an input.
at::Tensor Differentiable(at::Tensor output, const std::vector<at::Tensor>& inputs,
                          GradientRule rule);

}  // namespace isthmus::backend
