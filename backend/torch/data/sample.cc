#include "backend/torch/data/sample.h"

namespace isthmus::backend {

std::int64_t SampleShape::placeholders() const {
  std::int64_t sum = 0;
  for (const Encoder& encoder : encoders) sum += encoder.llm_tokens;
  return sum;
}

SampleShape ShapeOfSamples(const plan::Program& program) {
  SampleShape shape;
  shape.sequence_length = program.workload.sequence_length;
  for (const plan::PlacedModule& placed : program.modules) {
    if (placed.module.kind == plan::ModuleKind::kDecoder) {
      shape.vocabulary = placed.module.transformer.vocab_size;
    }
  }
  for (const plan::Edge& edge : program.edges) {
    const plan::Module& module = program.modules[static_cast<std::size_t>(edge.from)].module;
    const bool stem = module.input_width > 0;
    shape.encoders.push_back({.kind = module.kind,
                              .tokens = module.tokens_per_sample,
                              .llm_tokens = module.llm_tokens_per_sample,
                              .span = module.span_tokens,
                              .width = stem ? module.input_width : module.transformer.hidden});
  }
  return shape;
}

}  // namespace isthmus::backend
