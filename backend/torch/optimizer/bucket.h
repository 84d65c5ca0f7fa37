#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "backend/torch/modules/parameter.h"

namespace isthmus::backend {

/// Which of the ranks that share one copy of the optimizer state a rank is.
struct Shard {
  int index = 0;
  int count = 1;
};

/// Flat buffers of one bucket: working weights and main gradients of its parameters one after the
/// other, padded with zeros to a multiple of the shards. Shard i owns the i-th equal part.
///
/// Parameters' tensors are views of the buffers. Reduced gradients have a place of their own where
/// there are several shards: collectives may not read and write one memory.
class Bucket {
 public:
  /// `parameters` get their tensors; needs at least one element.
  Bucket(std::vector<Parameter*> parameters, at::ScalarType weight_type,
         at::ScalarType gradient_type, Shard shard, at::Device device);

  const std::vector<Parameter*>& parameters() const { return parameters_; }
  /// Where a parameter begins in the buffers, in elements.
  std::int64_t offset(std::size_t parameter) const { return offsets_[parameter]; }
  std::int64_t num_parameters() const { return num_parameters_; }  // without padding
  std::int64_t owned_begin() const { return owned_weights_.numel() * shard_.index; }
  std::int64_t owned_end() const { return owned_begin() + owned_weights_.numel(); }

  const at::Tensor& weights() const { return weights_; }
  const at::Tensor& gradients() const { return gradients_; }
  const at::Tensor& owned_weights() const { return owned_weights_; }
  const at::Tensor& owned_gradients() const { return owned_gradients_; }
  /// The part of a parameter's elements that is owned: of a buffer that starts at owned_begin().
  at::Tensor OwnedPart(const at::Tensor& owned, std::size_t parameter) const;
  /// Likewise of the parameter itself, flattened: where OwnedPart() lies in it.
  std::int64_t OwnedPartBegin(std::size_t parameter) const;

 private:
  std::vector<Parameter*> parameters_;
  std::vector<std::int64_t> offsets_;
  std::int64_t num_parameters_ = 0;
  Shard shard_;
  at::Tensor weights_;
  at::Tensor gradients_;
  at::Tensor owned_weights_;
  at::Tensor owned_gradients_;
};

}  // namespace isthmus::backend
