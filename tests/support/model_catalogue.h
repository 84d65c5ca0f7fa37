#pragma once

#include <string>

#include "plan/model/module.h"

/// Models that several tests use, with published or catalogued dimensions.
namespace isthmus::tests {

inline plan::Module Encoder(std::string name, int layers, std::int64_t hidden, std::int64_t heads) {
  plan::Module module;
  module.name = std::move(name);
  module.kind = plan::ModuleKind::kVit;
  module.transformer.num_layers = layers;
  module.transformer.hidden = hidden;
  module.transformer.ffn_hidden = 4 * hidden;
  module.transformer.num_heads = heads;
  module.transformer.num_kv_heads = heads;
  module.transformer.head_dim = hidden / heads;
  module.settings.tp_overlap = plan::TpOverlap::kNone;
  return module;
}

/// GPT style: MHA, plain MLP of 4·h, one vocabulary table.
inline plan::Module Gpt(std::string name, int layers, std::int64_t hidden, std::int64_t heads,
                        std::int64_t vocabulary) {
  plan::Module module = Encoder(std::move(name), layers, hidden, heads);
  module.kind = plan::ModuleKind::kDecoder;
  module.transformer.vocab_size = vocabulary;
  module.transformer.tied_embeddings = true;
  return module;
}

/// Llama style: GQA with heads of 128, gated MLP, rotary, untied head, vocabulary of 128,256.
inline plan::Module Llama(std::string name, int layers, std::int64_t hidden, std::int64_t ffn,
                          std::int64_t heads, std::int64_t kv_heads = 8) {
  plan::Module module = Gpt(std::move(name), layers, hidden, heads, 128256);
  module.transformer.ffn_hidden = ffn;
  module.transformer.num_kv_heads = kv_heads;
  module.transformer.head_dim = 128;
  module.transformer.gated_mlp = true;
  module.transformer.rotary = true;
  module.transformer.tied_embeddings = false;
  return module;
}

}  // namespace isthmus::tests
