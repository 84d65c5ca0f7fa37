#include "plan/model/module.h"

namespace isthmus::plan {

ModuleSettings DefaultSettings(const FrameworkRelease& framework) {
  const FrameworkDefaults& defaults = framework.defaults;
  ModuleSettings settings;
  settings.framework = &framework;
  settings.attention = defaults.attention.front();
  settings.loss = defaults.loss;
  settings.gradient_dtype = defaults.gradient_dtype;
  settings.tp_overlap = defaults.tp_overlap;
  settings.sequence_parallel = defaults.sequence_parallel;
  return settings;
}

DType ActivationType(const ModuleSettings& settings) {
  return settings.precision == DType::kFp8 ? DType::kBf16 : settings.precision;
}

DType ParameterType(const ModuleSettings& settings) {
  const bool is_fp8 = settings.precision == DType::kFp8 && settings.fp8_primary_weights;
  return is_fp8 ? DType::kFp8 : ActivationType(settings);
}

std::int64_t LayerMatrixParameters(const Transformer& t) {
  const std::int64_t query = t.num_heads * t.head_dim;
  const std::int64_t kv = t.num_kv_heads * t.head_dim;
  const std::int64_t gates = t.gated_mlp ? 2 : 1;
  return t.hidden * (query + 2 * kv) + query * t.hidden + (gates + 1) * t.hidden * t.ffn_hidden;
}

std::int64_t NormParameters(const Transformer& t) { return t.gated_mlp ? t.hidden : 2 * t.hidden; }

std::int64_t LayerParameters(const Transformer& t) {
  return LayerMatrixParameters(t) + 2 * NormParameters(t);
}

std::int64_t ProjectorParameters(const Projector& p, std::int64_t encoder_hidden,
                                 std::int64_t llm_hidden) {
  const std::int64_t inner = p.hidden > 0 ? p.hidden : llm_hidden;
  std::int64_t parameters = 0;
  std::int64_t width = encoder_hidden;
  for (int layer = 0; layer < p.num_layers; ++layer) {
    const std::int64_t next = layer + 1 == p.num_layers ? llm_hidden : inner;
    parameters += width * next;
    width = next;
  }
  return parameters;
}

std::int64_t TotalParameters(const Transformer& t) {
  std::int64_t parameters = t.num_layers * LayerParameters(t) + t.max_positions * t.hidden;
  if (t.vocab_size > 0) {
    const std::int64_t tables = t.tied_embeddings ? 1 : 2;
    parameters += tables * t.vocab_size * t.hidden + NormParameters(t);
  }
  return parameters;
}

}  // namespace isthmus::plan
