#include "tests/unit/backend_torch/reference_model.h"

#include <cmath>
#include <limits>

namespace isthmus::tests {
namespace {

at::Tensor Norm(const plan::Module& module, const NamedTensors& weights, const std::string& name,
                const at::Tensor& x) {
  const at::Tensor scale = weights.at(name + ".scale");
  if (!module.transformer.gated_mlp) {
    return at::layer_norm(x, {x.size(-1)}, scale, weights.at(name + ".shift"), 1e-5);
  }
  return x / (x.pow(2).mean(-1, true) + 1e-5).sqrt() * scale;
}

// Complex numbers turned by position · 10000^(−2i/d); position within the span in encoders.
at::Tensor Rotate(const plan::Module& module, const at::Tensor& x, std::int64_t span) {
  const std::int64_t half = x.size(2) / 2;
  at::Tensor positions = at::arange(x.size(0), at::kDouble);
  if (module.kind != plan::ModuleKind::kDecoder) positions = positions.remainder(span);
  std::vector<double> speeds;
  for (std::int64_t pair = 0; pair < half; ++pair) {
    speeds.push_back(std::pow(10000.0, -static_cast<double>(pair) / static_cast<double>(half)));
  }
  const at::Tensor angle = positions.unsqueeze(1) * at::tensor(speeds, at::kDouble);
  const at::Tensor turned = at::complex(x.narrow(2, 0, half), x.narrow(2, half, half)) *
                            at::polar(at::ones_like(angle), angle).unsqueeze(1);
  return at::cat({at::real(turned), at::imag(turned)}, 2);
}

at::Tensor Attend(const plan::Module& module, const NamedTensors& weights,
                  const std::string& prefix, const at::Tensor& x, std::int64_t span) {
  const plan::Transformer& t = module.transformer;
  const auto heads = [&](const char* name) {
    const at::Tensor y = at::linear(x, weights.at(prefix + name));
    return y.view({x.size(0), -1, t.head_dim});
  };
  at::Tensor q = heads("q");
  at::Tensor k = heads("k");
  const at::Tensor v = heads("v");
  if (t.qk_norm) {
    q = q / (q.pow(2).mean(-1, true) + 1e-5).sqrt();
    k = k / (k.pow(2).mean(-1, true) + 1e-5).sqrt();
  }
  if (t.rotary) {
    q = Rotate(module, q, span);
    k = Rotate(module, k, span);
  }
  const std::int64_t group = t.num_heads / t.num_kv_heads;
  const at::Tensor keys = k.repeat_interleave(group, 1);
  const at::Tensor values = v.repeat_interleave(group, 1);
  at::Tensor scores =
      at::einsum("qhd,khd->hqk", {q, keys}) / std::sqrt(static_cast<double>(t.head_dim));
  const at::Tensor position = at::arange(x.size(0));
  at::Tensor hidden =
      position.floor_divide(span).unsqueeze(0).ne(position.floor_divide(span).unsqueeze(1));
  if (module.kind == plan::ModuleKind::kDecoder) {
    hidden = hidden.logical_or(position.unsqueeze(0).gt(position.unsqueeze(1)));
  }
  scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor out = at::einsum("hqk,khd->qhd", {scores.softmax(-1), values});
  return at::linear(out.reshape({x.size(0), -1}), weights.at(prefix + "output"));
}

at::Tensor Mlp(const plan::Module& module, const NamedTensors& weights, const std::string& prefix,
               const at::Tensor& x) {
  const at::Tensor up = at::linear(x, weights.at(prefix + "up"));
  const at::Tensor active = module.transformer.gated_mlp
                                ? at::silu(at::linear(x, weights.at(prefix + "gate"))) * up
                                : at::gelu(up, "tanh");
  return at::linear(active, weights.at(prefix + "down"));
}

}  // namespace

at::Tensor ReferenceLayers(const plan::Module& module, const NamedTensors& weights, at::Tensor x,
                           std::int64_t span) {
  for (int layer = 0; layer < module.transformer.num_layers; ++layer) {
    const std::string prefix = module.name + ".layers." + std::to_string(layer) + ".";
    x = x + Attend(module, weights, prefix + "attention.",
                   Norm(module, weights, prefix + "norm1", x), span);
    x = x + Mlp(module, weights, prefix + "mlp.", Norm(module, weights, prefix + "norm2", x));
  }
  return x;
}

at::Tensor ReferenceDecoder(const plan::Module& module, const NamedTensors& weights,
                            const backend::BlockData& data, const at::Tensor& boundary) {
  const plan::Transformer& t = module.transformer;
  const std::string name = module.name + ".";
  const at::Tensor head = weights.at(name + (t.tied_embeddings ? "embedding" : "head"));
  at::Tensor loss = at::zeros({}, at::kDouble);
  std::int64_t used = 0;
  for (std::int64_t sample = 0; sample < data.tokens.size(0); ++sample) {
    const at::Tensor tokens = data.tokens[sample];
    at::Tensor x = at::embedding(weights.at(name + "embedding"), tokens);
    if (boundary.defined()) {
      const at::Tensor places = data.placeholders[0][sample].nonzero().flatten();
      x = x.index_copy(0, places, boundary.narrow(0, used, places.size(0)));
      used += places.size(0);
    }
    if (!t.rotary) x = x + weights.at(name + "positions").narrow(0, 0, tokens.size(0));
    const std::int64_t span = module.span_tokens > 0 ? module.span_tokens : tokens.size(0);
    x = ReferenceLayers(module, weights, x, span);
    const at::Tensor logits = at::linear(Norm(module, weights, name + "final_norm", x), head);
    const at::Tensor likelihoods = logits.log_softmax(-1);
    for (std::int64_t token = 0; token < tokens.size(0); ++token) {
      if (!data.loss_mask[sample][token].item<bool>()) continue;
      loss = loss - likelihoods[token][data.labels[sample][token].item<std::int64_t>()];
    }
  }
  return loss;
}

at::Tensor ReferenceEncoder(const plan::Module& module, const NamedTensors& weights,
                            const at::Tensor& patches) {
  const std::string name = module.name + ".";
  std::vector<at::Tensor> spans;
  for (std::int64_t begin = 0; begin < patches.size(0); begin += module.span_tokens) {
    const std::int64_t size = std::min(module.span_tokens, patches.size(0) - begin);
    at::Tensor x = at::linear(patches.narrow(0, begin, size), weights.at(name + "patches"));
    if (!module.transformer.rotary) {
      x = x + weights.at(name + "positions").narrow(0, 0, size);
    }
    spans.push_back(ReferenceLayers(module, weights, x, module.span_tokens));
  }
  const std::int64_t shuffle = module.tokens_per_sample / module.llm_tokens_per_sample;
  at::Tensor y = at::cat(spans).reshape({-1, shuffle * module.transformer.hidden});
  for (int layer = 0; layer < module.projector->num_layers; ++layer) {
    y = at::linear(y, weights.at(name + "projector." + std::to_string(layer)));
    if (layer + 1 < module.projector->num_layers) y = at::gelu(y, "tanh");
  }
  return y;
}

}  // namespace isthmus::tests
