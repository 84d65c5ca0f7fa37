#include "backend/torch/modules/rotary.h"

#include "backend/torch/modules/differentiable.h"

namespace isthmus::backend {
namespace {

/// Cosines and sines, [tokens, 1, head_dim / 2].
struct Angles {
  at::Tensor cosine;
  at::Tensor sine;
};

Angles AnglesOf(const ModuleRank& rank, const TokenLayout& layout) {
  const std::int64_t half = rank.transformer().head_dim / 2;
  at::Tensor positions = ToTensor(layout.PositionsOf(rank.cp->index()), at::kCPU);
  if (!layout.causal) positions = positions.remainder(layout.span);
  const at::Tensor powers = at::arange(half, at::kDouble).mul(-1.0 / static_cast<double>(half));
  const at::Tensor speeds = at::pow(at::Scalar(kRotaryBase), powers);
  const at::Tensor angles = positions.to(at::kDouble)
                                .unsqueeze(1)
                                .mul(speeds)
                                .repeat({layout.num_sequences, 1})
                                .unsqueeze(1);
  const auto finish = [&](const at::Tensor& values) {
    return values.to(at::TensorOptions().dtype(rank.statistics).device(rank.device));
  };
  return {finish(angles.cos()), finish(angles.sin())};
}

/// x with its first heads turned by the angles, backwards when `sign` is −1.
at::Tensor Turn(const at::Tensor& x, const Angles& angles, std::int64_t rotated, std::int64_t width,
                double sign) {
  at::Tensor y = x.clone();
  const std::int64_t half = width / 2;
  const auto heads = [&](const at::Tensor& tensor) {
    return tensor.narrow(1, 0, rotated).unflatten(1, {-1, width});
  };
  const at::Tensor from = heads(x).to(angles.cosine.scalar_type());
  const at::Tensor first = from.narrow(2, 0, half);
  const at::Tensor second = from.narrow(2, half, half);
  const at::Tensor sine = angles.sine * sign;
  heads(y).narrow(2, 0, half).copy_(first * angles.cosine - second * sine);
  heads(y).narrow(2, half, half).copy_(second * angles.cosine + first * sine);
  return y;
}

}  // namespace

at::Tensor Rotate(const ModuleRank& rank, const TokenLayout& layout, const at::Tensor& x,
                  std::int64_t rotated) {
  const std::int64_t width = rank.transformer().head_dim;
  const Angles angles = AnglesOf(rank, layout);
  at::Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = Turn(x.detach(), angles, rotated, width, 1.0);
  }
  return Differentiable(y, {x}, [angles, rotated, width](const at::Tensor& dy) {
    return std::vector<at::Tensor>{Turn(dy, angles, rotated, width, -1.0)};
  });
}

}  // namespace isthmus::backend
