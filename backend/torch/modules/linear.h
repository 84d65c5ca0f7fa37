#pragma once

#include <ATen/ATen.h>

#include "backend/torch/modules/module_rank.h"

/// Linear layers over the ranks of tp, y = x · Wᵀ with W of [out, in] and no bias. Weight gradients
/// go into Parameter::main_gradient, in its type, or are put off where the rank defers them.
namespace isthmus::backend {

/// How the tokens of a column-parallel layer's input lie over tp.
enum class ColumnInput : std::uint8_t {
  kSharded,  // cut: gathered, and again in the backward for the weight's gradient; dx is scattered
  kWhole,    // dx is all-reduced
  kPartial,  // whole, and whoever made it sums dx over tp
};

/// Column-parallel: W's rows are this rank's part of the outputs.
at::Tensor ColumnLinear(const ModuleRank& rank, Parameter& weight, const at::Tensor& x,
                        ColumnInput input);

enum class RowOutput : std::uint8_t { kSharded, kWhole };

/// Row-parallel: W's columns are this rank's part of the inputs; the partial sums are scattered
/// over tokens (the backward gathers dy) or all-reduced.
at::Tensor RowLinear(const ModuleRank& rank, Parameter& weight, const at::Tensor& x,
                     RowOutput output);

/// main_gradient += dyᵀ · x, in the wider of the gradient's and the operands' types.
void AccumulateProduct(const Parameter& weight, const at::Tensor& dy, const at::Tensor& x);

}  // namespace isthmus::backend
