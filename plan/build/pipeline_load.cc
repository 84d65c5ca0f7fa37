#include "plan/build/pipeline_load.h"

#include "base/check.h"

namespace isthmus::plan {
namespace {

// Passes over a module's layers, a forward being one.
double Passes(const Module& module) {
  const ModuleSettings& settings = module.settings;
  const bool is_encoder = module.kind != ModuleKind::kDecoder;
  if (settings.backward == BackwardMode::kAbsent || (is_encoder && settings.frozen)) return 1;
  const double backward = settings.frozen ? 1 : 2;
  return 1 + backward + (settings.recompute == Recompute::kFull ? 1 : 0);
}

// FLOP of one forward of one layer for one token.
double LayerFlops(const Transformer& t, double span, bool causal) {
  const double width = static_cast<double>(t.num_heads * t.head_dim);
  return 2.0 * static_cast<double>(LayerMatrixParameters(t)) +
         (causal ? 2.0 : 4.0) * span * width;
}

}  // namespace

PipelineLoad LoadOf(const Job& job, int module) {
  const Module& here = job.modules[static_cast<std::size_t>(module)];
  ISTHMUS_CHECK(here.layout.has_value(), "module {} has no layout of its own", here.name);
  const Transformer& t = here.transformer;
  PipelineLoad load{.num_layers = t.num_layers, .num_stages = here.layout->pp};
  if (here.kind != ModuleKind::kDecoder) return load;
  const double sequence = static_cast<double>(job.workload.sequence_length);
  const double cp = here.layout->cp;
  const double layer =
      Passes(here) * sequence / cp * LayerFlops(t, sequence, /*causal=*/true);
  // The head is never recomputed.
  const double head_passes = here.settings.frozen ? 2 : 3;
  load.last_extra =
      head_passes * sequence / cp * 2.0 * static_cast<double>(t.hidden * t.vocab_size) / layer;
  for (const Module& encoder : job.modules) {
    if (encoder.layout.has_value()) continue;
    const double work = LayerFlops(encoder.transformer, static_cast<double>(encoder.span_tokens),
                                   /*causal=*/false);
    load.first_extra += Passes(encoder) * encoder.transformer.num_layers *
                        static_cast<double>(encoder.tokens_per_sample) * work / layer;
  }
  return load;
}

}  // namespace isthmus::plan
