#pragma once

#include <cstdint>
#include <vector>

#include "plan/model/module.h"

namespace isthmus::plan {

/// The spans (images, clips) of samples that stand one after the other, in tokens of one kind.
///
/// Either all samples are alike, and the last span of each may be shorter, or every sample has a
/// number of whole spans of its own, none for text-only ones.
/// Cost: alike, no memory; else one number a sample. Questions are O(1).
class SampleSpans {
 public:
  /// `counts`: spans by sample; empty: all samples have `tokens_per_sample` tokens. Needs
  /// span_tokens ≥ 1 where there are tokens.
  SampleSpans(std::int64_t tokens_per_sample, std::int64_t span_tokens,
              const std::vector<std::int32_t>& counts);

  bool are_alike() const { return before_.empty(); }
  /// Spans and tokens of all samples in front of `sample`.
  std::int64_t SpansBefore(std::int64_t sample) const;
  std::int64_t TokensBefore(std::int64_t sample) const { return TokenAt(SpansBefore(sample)); }
  /// First token of span `span`, counted from the first sample of any row of whole samples.
  std::int64_t TokenAt(std::int64_t span) const;

 private:
  std::int64_t tokens_per_sample_ = 0;
  std::int64_t span_tokens_ = 0;
  std::int64_t spans_per_sample_ = 0;
  std::vector<std::int64_t> before_;  // by sample, and the end
};

/// Of an encoder's samples of a step, in tokens at the LLM.
SampleSpans LlmSpans(const Module& encoder);

/// Tokens inside the encoder of all samples of a step.
std::int64_t EncoderTokens(const Module& encoder, std::int64_t global_batch);

}  // namespace isthmus::plan
