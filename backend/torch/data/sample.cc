#include "backend/torch/data/sample.h"

#include <algorithm>

namespace isthmus::backend {

bool Sample::text_only() const {
  return std::all_of(patches.begin(), patches.end(),
                     [](const at::Tensor& patch) { return patch.size(0) == 0; });
}

std::int64_t SampleShape::Encoder::TokensOf(std::int64_t index) const {
  if (spans_of_sample.empty()) return tokens;
  const auto batch = static_cast<std::int64_t>(spans_of_sample.size());
  return span * spans_of_sample[static_cast<std::size_t>(index % batch)];
}

std::int64_t SampleShape::Encoder::LlmTokensOf(std::int64_t index) const {
  return tokens == 0 ? 0 : TokensOf(index) * llm_tokens / tokens;
}

std::int64_t SampleShape::MostPlaceholders() const {
  // Counts repeat with the batch; alike samples are one.
  std::size_t batch = 1;
  for (const Encoder& encoder : encoders) batch = std::max(batch, encoder.spans_of_sample.size());
  std::int64_t most = 0;
  for (std::size_t index = 0; index < batch; ++index) {
    std::int64_t sum = 0;
    for (const Encoder& encoder : encoders)
      sum += encoder.LlmTokensOf(static_cast<std::int64_t>(index));
    most = std::max(most, sum);
  }
  return most;
}

namespace {

/// A module's counts are by place.
std::vector<std::int32_t> CountsAsDrawn(const plan::Module& module,
                                        const plan::Workload& workload) {
  std::vector<std::int32_t> counts(module.spans_of_sample.size());
  for (std::size_t place = 0; place < counts.size(); ++place) {
    const std::int64_t sample = workload.SampleAt(static_cast<std::int64_t>(place));
    counts[static_cast<std::size_t>(sample)] = module.spans_of_sample[place];
  }
  return counts;
}

}  // namespace

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
                              .width = stem ? module.input_width : module.transformer.hidden,
                              .spans_of_sample = CountsAsDrawn(module, program.workload)});
  }
  return shape;
}

}  // namespace isthmus::backend
