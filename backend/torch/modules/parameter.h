#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::backend {

/// A run of a named global tensor's rows (or columns) inside a local tensor. `dim` is the dimension
/// that is cut, -1: the whole tensor is here.
struct ParameterPiece {
  std::string name;  // "language.layers.3.attention.q": the same in every layout
  std::vector<std::int64_t> global_shape;  // without padding
  int dim = -1;
  std::int64_t global_begin = 0;  // along dim
  std::int64_t local_begin = 0;   // along dim of the local tensor
  std::int64_t size = 0;          // along dim; 0 where the rank has padding only
};

/// A tensor of weights on one rank, as kernels see it: one or several pieces of global tensors
/// (q, k and v in one product), and vocabulary padding that is zero and stays zero.
///
/// `weight` and `main_gradient` are views into the flat buffers of its bucket. Frozen ones have no
/// main gradient.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;  // local
  std::vector<ParameterPiece> pieces;
  bool frozen = false;
  /// Equal on all ranks of tp. The gradient is whole on each of them, too, but where `partial` says
  /// that it is the one of the rank's own tokens (norms under sequence parallelism): those are
  /// summed over tp.
  bool replicated_over_tp = false;
  bool partial_over_tp = false;
  /// The last stage's copy of tied embeddings, which the first stage owns.
  bool tied_copy = false;
  at::Tensor weight;
  at::Tensor main_gradient;

  std::int64_t num_elements() const;
};

}  // namespace isthmus::backend
