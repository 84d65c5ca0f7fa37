#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "plan/program/program.h"

namespace isthmus::backend {

/// One sample of the training data, whole, in LLaVA's form: what an encoder sees stands in the
/// token stream as placeholders, the answer behind it, and the loss is taken of the answer alone.
struct Sample {
  at::Tensor tokens;     // [sequence] int64
  at::Tensor labels;     // [sequence] int64: the next token
  at::Tensor loss_mask;  // [sequence] bool: positions whose label counts
  // By edge: [sequence] bool, as many set as the encoder hands over tokens; none in text-only ones.
  std::vector<at::Tensor> placeholders;
  // By edge: [tokens, width] float, spans (images, clips) one after the other; no rows where the
  // sample has none.
  std::vector<at::Tensor> patches;

  bool text_only() const;
};

/// What samples have to fit: sequence, vocabulary, and every encoder's tokens, by edge.
struct SampleShape {
  struct Encoder {
    plan::ModuleKind kind = plan::ModuleKind::kVit;
    // Of the sample that has most, inside the encoder and as placeholders.
    std::int64_t tokens = 0;
    std::int64_t llm_tokens = 0;
    std::int64_t span = 0;                           // tokens of one image or clip
    std::int64_t width = 0;                          // of a patch or frame
    std::vector<std::int32_t> spans_of_sample = {};  // by number as drawn; empty: alike

    /// Of sample `index` of the training, whose global batches are one after the other.
    std::int64_t TokensOf(std::int64_t index) const;
    std::int64_t LlmTokensOf(std::int64_t index) const;
  };
  std::int64_t sequence_length = 0;
  std::int64_t vocabulary = 0;
  std::vector<Encoder> encoders;

  /// Of the sample that has most of them.
  std::int64_t MostPlaceholders() const;
};

SampleShape ShapeOfSamples(const plan::Program& program);

}  // namespace isthmus::backend
