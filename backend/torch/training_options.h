#pragma once

#include <cstdint>

namespace isthmus::backend {

/// The learning rate by step: linear from 0 over `warmup_steps`, then by `decay` down to `minimum`
/// at step `decay_steps`, and `minimum` from there on.
struct LearningRate {
  enum class Decay : std::uint8_t { kConstant, kLinear, kCosine };
  double peak = 1e-3;
  double minimum = 0.0;
  Decay decay = Decay::kConstant;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  // warm-up included; unused when constant

  /// For the step that is the `step`-th to update parameters, counted from 1.
  double At(std::int64_t step) const;
};

/// Dynamic loss scaling of fp16 runs, with the rules and defaults of PyTorch's GradScaler: after a
/// step with infinities the scale is multiplied by `backoff_factor`, after `growth_interval` steps
/// in a row without any by `growth_factor`.
struct LossScaling {
  double initial_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

/// How a run trains: what the program doesn't say, because no time depends on it.
///
/// AdamW with decoupled weight decay on all trained parameters. Gradients of the loss summed over
/// valid tokens are divided by their number over the world; `clip_norm` bounds the norm of the
/// result over all modules where the program clips.
struct TrainingOptions {
  LearningRate learning_rate;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double clip_norm = 1.0;
  double initial_std = 0.02;  // standard deviation of initial weights
  LossScaling loss_scaling;   // modules in fp16 only
  std::uint64_t seed = 1;     // of initial weights and data
};

}  // namespace isthmus::backend
