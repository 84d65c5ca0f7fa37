#include "backend/torch/modules/norm.h"

#include "backend/torch/modules/differentiable.h"

namespace isthmus::backend {
namespace {

void Accumulate(const Parameter& parameter, const at::Tensor& gradient) {
  if (!parameter.frozen) parameter.main_gradient.add_(gradient);
}

at::Tensor InverseRms(const at::Tensor& x) {
  return x.square().mean(-1, /*keepdim=*/true).add_(kNormEpsilon).rsqrt_();
}

/// Gradient of x · rms(x)⁻¹ where `normed` is that product.
at::Tensor RmsBackward(const at::Tensor& gradient, const at::Tensor& normed,
                       const at::Tensor& inverse) {
  return (gradient - normed * (gradient * normed).mean(-1, /*keepdim=*/true)) * inverse;
}

}  // namespace

at::Tensor LayerNorm(const ModuleRank& rank, Parameter& scale, Parameter& shift,
                     const at::Tensor& x) {
  const at::Tensor saved = x.detach();
  const std::vector<std::int64_t> width{x.size(-1)};
  const at::ScalarType wide = rank.statistics;
  at::Tensor y;
  at::Tensor mean;
  at::Tensor inverse;
  {
    const at::NoGradGuard no_grad;
    std::tie(y, mean, inverse) = at::native_layer_norm(saved.to(wide), width, scale.weight.to(wide),
                                                       shift.weight.to(wide), kNormEpsilon);
    y = y.to(x.scalar_type());
  }
  const auto backward = [&scale, &shift, saved, width, wide, mean, inverse](const at::Tensor& dy) {
    const bool trained = !scale.frozen;
    const auto [dx, dscale, dshift] = at::native_layer_norm_backward(
        dy.to(wide), saved.to(wide), width, mean, inverse, scale.weight.to(wide),
        shift.weight.to(wide), {true, trained, trained});
    if (trained) {
      Accumulate(scale, dscale);
      Accumulate(shift, dshift);
    }
    return std::vector<at::Tensor>{dx.to(saved.scalar_type()), at::Tensor()};
  };
  return Differentiable(y, {x, rank.AnchorOf(scale)}, backward);
}

at::Tensor RmsNorm(const ModuleRank& rank, Parameter& scale, const at::Tensor& x) {
  const at::Tensor saved = x.detach();
  const at::ScalarType wide = rank.statistics;
  at::Tensor inverse;
  at::Tensor y;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor widened = saved.to(wide);
    inverse = InverseRms(widened);
    y = (widened * inverse * scale.weight.to(wide)).to(x.scalar_type());
  }
  const auto backward = [&scale, saved, wide, inverse](const at::Tensor& gradient) {
    const at::Tensor dy = gradient.to(wide);
    const at::Tensor normed = saved.to(wide) * inverse;
    Accumulate(scale, (dy * normed).sum(0));
    const at::Tensor dx = RmsBackward(dy * scale.weight.to(wide), normed, inverse);
    return std::vector<at::Tensor>{dx.to(saved.scalar_type()), at::Tensor()};
  };
  return Differentiable(y, {x, rank.AnchorOf(scale)}, backward);
}

at::Tensor HeadNorm(const ModuleRank& rank, const at::Tensor& x, std::int64_t normed,
                    std::int64_t width) {
  const at::Tensor saved = x.detach();
  const at::ScalarType wide = rank.statistics;
  const auto heads = [=](const at::Tensor& tensor) {
    return tensor.narrow(1, 0, normed).unflatten(1, {-1, width});
  };
  at::Tensor inverse;
  at::Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = saved.clone();
    inverse = InverseRms(heads(saved).to(wide));
    heads(y).copy_(heads(saved).to(wide) * inverse);
  }
  const auto backward = [heads, saved, wide, inverse](const at::Tensor& dy) {
    at::Tensor dx = dy.clone();
    const at::Tensor normed_heads = heads(saved).to(wide) * inverse;
    heads(dx).copy_(RmsBackward(heads(dy).to(wide), normed_heads, inverse));
    return std::vector<at::Tensor>{dx};
  };
  return Differentiable(y, {x}, backward);
}

}  // namespace isthmus::backend
