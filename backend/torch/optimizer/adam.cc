#include "backend/torch/optimizer/adam.h"

#include <cmath>

namespace isthmus::backend {
namespace {

bool IsMaster(at::ScalarType type) { return type == at::kFloat || type == at::kDouble; }

}  // namespace

Adam::Adam(const at::Tensor& weights) {
  const bool is_master = IsMaster(weights.scalar_type());
  const at::TensorOptions type =
      weights.options().dtype(is_master ? weights.scalar_type() : at::kFloat);
  if (!is_master) master_ = weights.to(at::kFloat);
  first_ = at::zeros_like(weights, type);
  second_ = at::zeros_like(weights, type);
}

void Adam::Step(const at::Tensor& weights, const at::Tensor& gradients, std::int64_t step,
                const TrainingOptions& options) {
  const at::NoGradGuard no_grad;
  const double rate = options.learning_rate.At(step);
  at::Tensor master = master_.defined() ? master_ : weights;
  const at::Tensor gradient = gradients.to(first_.scalar_type());
  master.mul_(1.0 - rate * options.weight_decay);
  first_.lerp_(gradient, 1.0 - options.beta1);
  second_.mul_(options.beta2).addcmul_(gradient, gradient, 1.0 - options.beta2);
  const auto count = static_cast<double>(step);
  const double bias1 = 1.0 - std::pow(options.beta1, count);
  const double bias2 = 1.0 - std::pow(options.beta2, count);
  const at::Tensor divisor = second_.sqrt().div_(std::sqrt(bias2)).add_(options.epsilon);
  master.addcdiv_(first_, divisor, -rate / bias1);
  if (master_.defined()) weights.copy_(master_);
}

}  // namespace isthmus::backend
