#include <algorithm>
#include <cmath>
#include <numbers>

#include "backend/torch/training_options.h"

namespace isthmus::backend {

double LearningRate::At(std::int64_t step) const {
  if (step < warmup_steps) {
    return peak * static_cast<double>(step) / static_cast<double>(warmup_steps);
  }
  if (decay == Decay::kConstant) return peak;
  const std::int64_t length = decay_steps - warmup_steps;
  const double done =
      length <= 0
          ? 1.0
          : std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(length));
  const double left =
      decay == Decay::kLinear ? 1.0 - done : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return minimum + (peak - minimum) * left;
}

}  // namespace isthmus::backend
