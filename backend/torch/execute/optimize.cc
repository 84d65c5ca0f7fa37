#include <algorithm>
#include <cmath>

#include "backend/torch/execute/executor.h"

// Optimizer ops, and what ends a step.
namespace isthmus::backend {

void Executor::Optimize(const plan::Op& op) {
  ModuleParameters& parameters = *parameters_.at(op.module);
  switch (op.optimizer()) {
    case plan::OptimizerAction::kZero:
      return parameters.ZeroGradients();
    case plan::OptimizerAction::kNorm:
      return ProduceScalar(op, plan::WorldScalar::kNorm, parameters.SquaredNorm());
    case plan::OptimizerAction::kCheck:
      return ProduceScalar(op, plan::WorldScalar::kFoundInf, parameters.FoundInfinity());
    case plan::OptimizerAction::kClip:
      ReadScalars(op);
      if (scalars_.found_inf == 0.0) parameters.ScaleGradients(GradientScale());
      return;
    case plan::OptimizerAction::kStep:
      ReadScalars(op);
      if (scalars_.found_inf == 0.0) parameters.Step(num_updates_ + 1, options_.training);
      return;
  }
}

void Executor::ProduceScalar(const plan::Op& op, plan::WorldScalar kind, const at::Tensor& value) {
  HeldValue& result = values_.At(role_.produced_by(op).front());
  result.scalar = kind;
  result.tensor = value.to(ScalarType(op.module));
}

void Executor::ReadScalars(const plan::Op& op) {
  device_.WaitForCompute();
  scalars_ = {.tokens = static_cast<double>(sums_.tokens)};
  for (const plan::ValueId value : role_.consumed_by(op)) {
    if (values_.StorageOf(value).kind != plan::ValueKind::kScalar) continue;
    const HeldValue& scalar = values_.At(value);
    const double number = scalar.tensor.item<double>();
    switch (scalar.scalar) {
      case plan::WorldScalar::kTokens:
        scalars_.tokens = number;
        break;
      case plan::WorldScalar::kFoundInf:
        scalars_.found_inf += number;
        break;
      case plan::WorldScalar::kNorm:
        scalars_.squared_norm = scalars_.squared_norm.value_or(0.0) + number;
        break;
    }
  }
}

double Executor::GradientScale() const {
  constexpr double kClipEpsilon = 1e-6;  // as torch.nn.utils.clip_grad_norm_
  const double scale = 1.0 / (std::max(scalars_.tokens, 1.0) * sums_.loss_scale);
  if (!scalars_.squared_norm) return scale;
  const double norm = std::sqrt(*scalars_.squared_norm) * scale;
  return scale * std::min(1.0, options_.training.clip_norm / (norm + kClipEpsilon));
}

Executor::Totals Executor::AgreeOnTotals() {
  // Ranks without trained parameters have read no scalars; squares are never below 0.
  constexpr double kNoNorm = -1.0;
  at::Tensor mine = at::zeros({1, 4}, at::kDouble);
  mine[0][0] = static_cast<double>(sums_.tokens);
  if (sums_.loss.defined()) mine[0][1] = sums_.loss.to(at::kCPU).squeeze();
  mine[0][2] = scalars_.found_inf;
  mine[0][3] = scalars_.squared_norm.value_or(kNoNorm);
  Communicator& control = communicators_.control();
  at::Tensor all = at::zeros({control.size(), 4}, at::kDouble);
  control.AllGather(all, mine).Wait();
  Totals totals;
  for (std::int64_t rank = 0; rank < all.size(0); ++rank) {
    totals.tokens += all[rank][0].item<double>();
    totals.loss += all[rank][1].item<double>();
    totals.found_inf = std::max(totals.found_inf, all[rank][2].item<double>());
    const double squared_norm = all[rank][3].item<double>();
    // A sum over ranks: equal on all that have it.
    if (squared_norm != kNoNorm) totals.squared_norm = squared_norm;
  }
  return totals;
}

StepResult Executor::EndStep() {
  device_.WaitForCompute();
  const Totals totals = AgreeOnTotals();
  const double tokens = std::max(totals.tokens, 1.0);
  StepResult result;
  result.tokens = static_cast<std::int64_t>(totals.tokens);
  result.loss = totals.loss / tokens;
  result.loss_scale = sums_.loss_scale;
  result.skipped = totals.found_inf > 0.0;
  if (totals.squared_norm) {
    result.gradient_norm = std::sqrt(*totals.squared_norm) / (tokens * sums_.loss_scale);
  }
  if (!result.skipped) ++num_updates_;
  if (has_fp16()) scaler_.Update(result.skipped);
  return result;
}

void Executor::GatherParameters() {
  for (const auto& [module, parameters] : parameters_) {
    for (std::size_t bucket = 0; bucket < parameters->buckets().size(); ++bucket) {
      for (std::size_t group = 0; group < role_.groups.size(); ++group) {
        const plan::GroupRef& ref = role_.groups[group];
        if (ref.kind != plan::GroupRef::Kind::kAxes || ref.module != module) continue;
        if (ref.axes != (plan::kDpShard | plan::kCp)) continue;
        parameters->Gather(bucket, communicators_.Of(static_cast<std::uint32_t>(group))).Wait();
      }
    }
  }
}

}  // namespace isthmus::backend
