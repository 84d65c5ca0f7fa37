#pragma once

#include <cstdint>

#include "backend/torch/training_options.h"

namespace isthmus::backend {

/// Dynamic loss scaling, exactly as PyTorch's GradScaler.update(): found infinities shrink the
/// scale and start the count of good steps again; as many good steps in a row as the interval grow
/// it. Equal on all ranks, since found_inf is.
class LossScaler {
 public:
  explicit LossScaler(const LossScaling& options)
      : options_(options), scale_(options.initial_scale) {}

  double scale() const { return scale_; }
  std::int64_t num_good_steps() const { return num_good_steps_; }  // since the last change
  /// After a step.
  void Update(bool found_inf) {
    if (found_inf) {
      scale_ *= options_.backoff_factor;
      num_good_steps_ = 0;
    } else if (++num_good_steps_ == options_.growth_interval) {
      scale_ *= options_.growth_factor;
      num_good_steps_ = 0;
    }
  }
  /// Goes on from a checkpoint.
  void Restore(double scale, std::int64_t num_good_steps) {
    scale_ = scale;
    num_good_steps_ = num_good_steps;
  }

 private:
  LossScaling options_;
  double scale_;
  std::int64_t num_good_steps_ = 0;
};

}  // namespace isthmus::backend
