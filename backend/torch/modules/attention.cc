#include "backend/torch/modules/attention.h"

#include "backend/torch/modules/context_parallel.h"
#include "backend/torch/modules/differentiable.h"

namespace isthmus::backend {

at::Tensor Attention(const ModuleRank& rank, const TokenLayout& layout, const at::Tensor& qkv) {
  const plan::Transformer& t = rank.transformer();
  const int tp = rank.tp->size();
  const QkvWidths widths{.query = t.num_heads / tp * t.head_dim,
                         .kv = t.num_kv_heads / tp * t.head_dim,
                         .head_dim = t.head_dim};
  const std::shared_ptr<ContextParallelCore> core = MakeCore(rank, layout, widths);
  const bool recomputes = rank.module->settings.recompute == plan::Recompute::kSelective;
  const at::Tensor saved = qkv.detach();
  ContextParallelCore::Output output;
  {
    const at::NoGradGuard no_grad;
    output = core->Forward(saved);
  }
  const at::Tensor out = output.out;
  if (recomputes) {
    output = {};
  } else {
    output.out = out.detach();  // without its history, of which this rule is a part
  }
  const auto backward = [core, saved, output, recomputes](const at::Tensor& dout) {
    return std::vector<at::Tensor>{
        core->Backward(saved, recomputes ? core->Forward(saved) : output, dout)};
  };
  return Differentiable(out, {qkv}, backward);
}

}  // namespace isthmus::backend
