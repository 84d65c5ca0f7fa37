#include "backend/torch/modules/mlp.h"

#include "backend/torch/modules/differentiable.h"

namespace isthmus::backend {

at::Tensor Gelu(const at::Tensor& x) {
  const at::Tensor saved = x.detach();
  at::Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = at::gelu(saved, "tanh");
  }
  return Differentiable(y, {x}, [saved](const at::Tensor& dy) {
    return std::vector<at::Tensor>{at::gelu_backward(dy, saved, "tanh")};
  });
}

at::Tensor GatedSilu(const at::Tensor& gate_and_up) {
  const at::Tensor saved = gate_and_up.detach();
  const std::int64_t width = saved.size(1) / 2;
  at::Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = at::silu(saved.narrow(1, 0, width)).mul_(saved.narrow(1, width, width));
  }
  return Differentiable(y, {gate_and_up}, [saved, width](const at::Tensor& dy) {
    const at::Tensor gate = saved.narrow(1, 0, width);
    const at::Tensor up = saved.narrow(1, width, width);
    return std::vector<at::Tensor>{
        at::cat({at::silu_backward(dy * up, gate), dy * at::silu(gate)}, 1)};
  });
}

}  // namespace isthmus::backend
