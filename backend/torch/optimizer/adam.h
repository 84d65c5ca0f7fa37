#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "backend/torch/training_options.h"

namespace isthmus::backend {

/// AdamW over the owned part of a bucket, with an fp32 master copy of 16-bit weights.
///
///   w ← w·(1 − lr·λ); m ← m + (1−β1)·(g−m); v ← β2·v + (1−β2)·g²
///   w ← w − lr/(1−β1^t) · m / (√v/√(1−β2^t) + ε)
///
/// as PyTorch's AdamW. Moments and master are fp32; with fp32 or fp64 weights of their type, and
/// the weights are their own master. Elements whose gradients are always 0 and that start at 0
/// (padding) stay 0.
class Adam {
 public:
  explicit Adam(const at::Tensor& weights);

  /// `step` counts updates from 1.
  void Step(const at::Tensor& weights, const at::Tensor& gradients, std::int64_t step,
            const TrainingOptions& options);

  /// Undefined where weights are their own master.
  const at::Tensor& master() const { return master_; }
  const at::Tensor& first_moment() const { return first_; }
  const at::Tensor& second_moment() const { return second_; }

 private:
  at::Tensor master_;
  at::Tensor first_;
  at::Tensor second_;
};

}  // namespace isthmus::backend
