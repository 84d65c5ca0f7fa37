#include "tests/support/torch/reference_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backend/torch/modules/chunk.h"

namespace isthmus::tests {
namespace {

constexpr double kNormEpsilon = 1e-5;
constexpr double kRotaryBase = 10000.0;

std::string LayerName(const plan::Module& module, int layer, const char* what) {
  return fmt::format("{}.layers.{}.{}", module.name, layer, what);
}

std::int64_t Positions(const plan::Module& module) {
  const plan::Transformer& t = module.transformer;
  if (t.rotary) return 0;
  if (module.kind == plan::ModuleKind::kDecoder) return t.max_positions;
  return module.input_width > 0 ? std::max(t.max_positions, module.span_tokens) : 0;
}

// Turns pairs (i, i + d/2) of each head by position · base^(-2i/d). [tokens, heads, d].
at::Tensor Rotate(const at::Tensor& heads, const at::Tensor& positions) {
  const std::int64_t half = heads.size(2) / 2;
  const at::Tensor exponents = at::arange(half, at::kDouble) / static_cast<double>(half);
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(1) *
                            at::pow(at::scalar_tensor(kRotaryBase, at::kDouble), -exponents);
  const at::Tensor cosine = angles.cos().to(heads.dtype()).unsqueeze(1);
  const at::Tensor sine = angles.sin().to(heads.dtype()).unsqueeze(1);
  const at::Tensor first = heads.narrow(2, 0, half);
  const at::Tensor second = heads.narrow(2, half, half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine}, 2);
}

at::Tensor HeadNorm(const at::Tensor& heads) {
  return heads * at::rsqrt(heads.square().mean(-1, true) + kNormEpsilon);
}

}  // namespace

ReferenceModel::ReferenceModel(const plan::Job& job, const backend::TrainingOptions& options,
                               at::ScalarType dtype)
    : job_(job), options_(options), dtype_(dtype) {
  for (const plan::Module& module : job_.modules) AddModule(module);
}

void ReferenceModel::AddParameter(const std::string& name, std::vector<std::int64_t> shape,
                                  bool frozen, int num_layers) {
  backend::Parameter parameter;
  parameter.name = name;
  parameter.shape = shape;
  parameter.pieces.push_back(
      {.name = name, .global_shape = shape, .dim = -1, .size = shape.front()});
  parameter.weight = at::zeros(shape, dtype_);
  backend::InitializeParameters({&parameter}, options_.seed, options_.initial_std, num_layers);
  parameters_[name] = parameter.weight;
  if (frozen) return;
  parameters_[name].requires_grad_(true);
  gradients_[name] = at::zeros(shape, dtype_);
  first_moments_[name] = at::zeros(shape, dtype_);
  second_moments_[name] = at::zeros(shape, dtype_);
}

void ReferenceModel::AddNorm(const plan::Module& module, const std::string& name) {
  const plan::Transformer& t = module.transformer;
  AddParameter(name + ".scale", {t.hidden}, module.settings.frozen, t.num_layers);
  if (!t.gated_mlp) AddParameter(name + ".shift", {t.hidden}, module.settings.frozen, t.num_layers);
}

void ReferenceModel::AddLayer(const plan::Module& module, int layer) {
  const plan::Transformer& t = module.transformer;
  const std::int64_t query = t.num_heads * t.head_dim;
  const std::int64_t kv = t.num_kv_heads * t.head_dim;
  const auto add = [&](const char* what, std::int64_t out, std::int64_t in) {
    AddParameter(LayerName(module, layer, what), {out, in}, module.settings.frozen, t.num_layers);
  };
  AddNorm(module, LayerName(module, layer, "norm1"));
  add("attention.q", query, t.hidden);
  add("attention.k", kv, t.hidden);
  add("attention.v", kv, t.hidden);
  add("attention.output", t.hidden, query);
  AddNorm(module, LayerName(module, layer, "norm2"));
  if (t.gated_mlp) add("mlp.gate", t.ffn_hidden, t.hidden);
  add("mlp.up", t.ffn_hidden, t.hidden);
  add("mlp.down", t.hidden, t.ffn_hidden);
}

void ReferenceModel::AddProjector(const plan::Module& encoder) {
  const plan::Projector& projector = *encoder.projector;
  const std::int64_t out =
      job_.modules[static_cast<std::size_t>(job_.decoder())].transformer.hidden;
  const std::int64_t inner = projector.hidden > 0 ? projector.hidden : out;
  std::int64_t width =
      encoder.transformer.hidden * encoder.tokens_per_sample / encoder.llm_tokens_per_sample;
  for (int layer = 0; layer < projector.num_layers; ++layer) {
    const std::int64_t next = layer + 1 == projector.num_layers ? out : inner;
    AddParameter(fmt::format("{}.projector.{}", encoder.name, layer), {next, width},
                 projector.frozen, encoder.transformer.num_layers);
    width = next;
  }
}

void ReferenceModel::AddModule(const plan::Module& module) {
  const plan::Transformer& t = module.transformer;
  const bool frozen = module.settings.frozen;
  const auto add = [&](const char* what, std::int64_t rows, std::int64_t columns) {
    AddParameter(fmt::format("{}.{}", module.name, what), {rows, columns}, frozen, t.num_layers);
  };
  if (module.input_width > 0) add("patches", t.hidden, module.input_width);
  if (t.vocab_size > 0) add("embedding", t.vocab_size, t.hidden);
  if (Positions(module) > 0) add("positions", Positions(module), t.hidden);
  for (int layer = 0; layer < t.num_layers; ++layer) AddLayer(module, layer);
  if (t.vocab_size > 0) AddNorm(module, module.name + ".final_norm");
  if (t.vocab_size > 0 && !t.tied_embeddings) add("head", t.vocab_size, t.hidden);
  if (module.projector) AddProjector(module);
}

at::Tensor ReferenceModel::Linear(const at::Tensor& input, const std::string& name) const {
  return at::matmul(input, Of(name).t());
}

at::Tensor ReferenceModel::Norm(const plan::Module& module, const at::Tensor& input,
                                const std::string& name) const {
  if (module.transformer.gated_mlp) return HeadNorm(input) * Of(name + ".scale");
  const at::Tensor centred = input - input.mean(-1, true);
  return HeadNorm(centred) * Of(name + ".scale") + Of(name + ".shift");
}

at::Tensor ReferenceModel::Attention(const plan::Module& module, const at::Tensor& input, int layer,
                                     std::int64_t span) const {
  const plan::Transformer& t = module.transformer;
  const std::int64_t tokens = input.size(0);
  const auto heads_of = [&](const char* what, std::int64_t heads) {
    return Linear(input, LayerName(module, layer, what)).view({tokens, heads, t.head_dim});
  };
  at::Tensor query = heads_of("attention.q", t.num_heads);
  at::Tensor key = heads_of("attention.k", t.num_kv_heads);
  at::Tensor value = heads_of("attention.v", t.num_kv_heads);
  if (t.qk_norm) {
    query = HeadNorm(query);
    key = HeadNorm(key);
  }
  const at::Tensor order = at::arange(tokens, at::kLong);
  if (t.rotary) {
    query = Rotate(query, at::remainder(order, span));
    key = Rotate(key, at::remainder(order, span));
  }
  const std::int64_t group = t.num_heads / t.num_kv_heads;
  key = key.repeat_interleave(group, 1);
  value = value.repeat_interleave(group, 1);
  const at::Tensor block = at::floor_divide(order, span);
  at::Tensor allowed = block.unsqueeze(1) == block.unsqueeze(0);
  if (module.kind == plan::ModuleKind::kDecoder) {
    allowed = allowed.logical_and(order.unsqueeze(1) >= order.unsqueeze(0));
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(t.head_dim));
  const at::Tensor scores =
      at::matmul(query.transpose(0, 1), key.permute({1, 2, 0})) * scale;  // [heads, tokens, tokens]
  const at::Tensor weights = scores.masked_fill(allowed.logical_not(), -INFINITY).softmax(-1);
  const at::Tensor mixed = at::matmul(weights, value.transpose(0, 1)).transpose(0, 1);
  return Linear(mixed.reshape({tokens, t.num_heads * t.head_dim}),
                LayerName(module, layer, "attention.output"));
}

at::Tensor ReferenceModel::Mlp(const plan::Module& module, const at::Tensor& input,
                               int layer) const {
  const at::Tensor up = Linear(input, LayerName(module, layer, "mlp.up"));
  const at::Tensor inner = module.transformer.gated_mlp
                               ? at::silu(Linear(input, LayerName(module, layer, "mlp.gate"))) * up
                               : at::gelu(up, "tanh");
  return Linear(inner, LayerName(module, layer, "mlp.down"));
}

at::Tensor ReferenceModel::Layers(const plan::Module& module, at::Tensor hidden,
                                  std::int64_t span) const {
  for (int layer = 0; layer < module.transformer.num_layers; ++layer) {
    const at::Tensor mixed =
        hidden +
        Attention(module, Norm(module, hidden, LayerName(module, layer, "norm1")), layer, span);
    hidden = mixed + Mlp(module, Norm(module, mixed, LayerName(module, layer, "norm2")), layer);
  }
  return hidden;
}

at::Tensor ReferenceModel::Project(const plan::Module& encoder, at::Tensor hidden) const {
  if (!encoder.projector) return hidden;
  for (int layer = 0; layer < encoder.projector->num_layers; ++layer) {
    if (layer > 0) hidden = at::gelu(hidden, "tanh");
    hidden = Linear(hidden, fmt::format("{}.projector.{}", encoder.name, layer));
  }
  return hidden;
}

at::Tensor ReferenceModel::Encode(const plan::Module& module, const at::Tensor& patches) const {
  at::Tensor hidden = patches.to(dtype_);
  if (module.input_width > 0) {
    hidden = Linear(hidden, module.name + ".patches");
    if (Positions(module) > 0) {
      const at::Tensor position =
          at::remainder(at::arange(hidden.size(0), at::kLong), module.span_tokens);
      hidden = hidden + Of(module.name + ".positions").index_select(0, position);
    }
  }
  hidden = Layers(module, hidden, module.span_tokens);
  // Pixel shuffle: neighbours in the stream become one wider token.
  const std::int64_t ratio = module.tokens_per_sample / module.llm_tokens_per_sample;
  hidden = hidden.reshape({hidden.size(0) / ratio, hidden.size(1) * ratio});
  return Project(module, hidden);
}

at::Tensor ReferenceModel::Loss(const backend::Sample& sample) const {
  const plan::Module& llm = job_.modules[static_cast<std::size_t>(job_.decoder())];
  const plan::Transformer& t = llm.transformer;
  at::Tensor hidden = Of(llm.name + ".embedding").index_select(0, sample.tokens);
  for (std::size_t edge = 0; edge < job_.edges.size(); ++edge) {
    if (sample.patches[edge].size(0) == 0) continue;
    const plan::Module& encoder = job_.modules[static_cast<std::size_t>(job_.edges[edge].from)];
    const at::Tensor rows = sample.placeholders[edge].nonzero().squeeze(1);
    hidden = hidden.index_copy(0, rows, Encode(encoder, sample.patches[edge]));
  }
  const std::int64_t length = hidden.size(0);
  if (Positions(llm) > 0) hidden = hidden + Of(llm.name + ".positions").narrow(0, 0, length);
  hidden = Layers(llm, hidden, llm.span_tokens > 0 ? llm.span_tokens : length);
  hidden = Norm(llm, hidden, llm.name + ".final_norm");
  const at::Tensor logits = Linear(hidden, llm.name + (t.tied_embeddings ? ".embedding" : ".head"));
  const at::Tensor chosen = logits.log_softmax(-1).gather(1, sample.labels.unsqueeze(1)).squeeze(1);
  return -(chosen * sample.loss_mask.to(dtype_)).sum();
}

double ReferenceModel::Step(const std::vector<backend::Sample>& samples) {
  for (auto& [name, gradient] : gradients_) parameters_.at(name).mutable_grad() = at::Tensor();
  double loss_sum = 0.0;
  double tokens = 0.0;
  for (const backend::Sample& sample : samples) {
    const at::Tensor loss = Loss(sample);
    loss_sum += loss.item<double>();
    tokens += static_cast<double>(sample.loss_mask.sum().item<std::int64_t>());
    if (loss.requires_grad()) loss.backward();
  }
  Update(tokens);
  return loss_sum / tokens;
}

void ReferenceModel::Update(double tokens) {
  at::NoGradGuard no_grad;
  double square = 0.0;
  for (auto& [name, gradient] : gradients_) {
    const at::Tensor& own = parameters_.at(name).grad();
    gradient = own.defined() ? own / tokens : at::zeros_like(parameters_.at(name));
    square += gradient.square().sum().item<double>();
  }
  gradient_norm_ = std::sqrt(square);
  double factor = 1.0;
  if (job_.optimizer.clip_gradients && options_.clip_norm > 0.0) {
    factor = std::min(1.0, options_.clip_norm / (gradient_norm_ + 1e-6));
  }
  ++num_updates_;
  const auto power = static_cast<double>(num_updates_);
  const double rate = options_.learning_rate.At(num_updates_);
  const double bias1 = 1.0 - std::pow(options_.beta1, power);
  const double bias2 = 1.0 - std::pow(options_.beta2, power);
  for (auto& [name, gradient] : gradients_) {
    gradient.mul_(factor);
    at::Tensor& first = first_moments_.at(name);
    at::Tensor& second = second_moments_.at(name);
    first.mul_(options_.beta1).add_(gradient * (1.0 - options_.beta1));
    second.mul_(options_.beta2).add_(gradient.square() * (1.0 - options_.beta2));
    const at::Tensor update = (first / bias1) / ((second / bias2).sqrt() + options_.epsilon);
    at::Tensor& weight = parameters_.at(name);
    weight.mul_(1.0 - rate * options_.weight_decay).sub_(update * rate);
  }
}

}  // namespace isthmus::tests
