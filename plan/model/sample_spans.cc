#include "plan/model/sample_spans.h"

#include "base/check.h"

namespace isthmus::plan {

SampleSpans::SampleSpans(std::int64_t tokens_per_sample, std::int64_t span_tokens,
                         const std::vector<std::int32_t>& counts)
    : tokens_per_sample_(tokens_per_sample), span_tokens_(span_tokens) {
  ISTHMUS_CHECK(tokens_per_sample >= 0 && (span_tokens >= 1 || tokens_per_sample == 0),
                "spans of {} tokens in samples of {}", span_tokens, tokens_per_sample);
  if (tokens_per_sample > 0) {
    spans_per_sample_ = (tokens_per_sample + span_tokens - 1) / span_tokens;
  }
  if (counts.empty()) return;
  before_.reserve(counts.size() + 1);
  before_.push_back(0);
  for (const std::int32_t count : counts) {
    ISTHMUS_CHECK(count >= 0, "a sample of {} spans", count);
    before_.push_back(before_.back() + count);
  }
}

std::int64_t SampleSpans::SpansBefore(std::int64_t sample) const {
  if (are_alike()) return sample * spans_per_sample_;
  ISTHMUS_CHECK(sample >= 0 && static_cast<std::size_t>(sample) < before_.size(), "sample {} of {}",
                sample, before_.size() - 1);
  return before_[static_cast<std::size_t>(sample)];
}

std::int64_t SampleSpans::TokenAt(std::int64_t span) const {
  if (!are_alike()) return span * span_tokens_;
  if (spans_per_sample_ == 0) return 0;
  return span / spans_per_sample_ * tokens_per_sample_ + span % spans_per_sample_ * span_tokens_;
}

SampleSpans LlmSpans(const Module& encoder) {
  const std::int64_t span =
      encoder.tokens_per_sample == 0
          ? 0
          : encoder.span_tokens * encoder.llm_tokens_per_sample / encoder.tokens_per_sample;
  return {encoder.llm_tokens_per_sample, span, encoder.spans_of_sample};
}

std::int64_t EncoderTokens(const Module& encoder, std::int64_t global_batch) {
  return SampleSpans(encoder.tokens_per_sample, encoder.span_tokens, encoder.spans_of_sample)
      .TokensBefore(global_batch);
}

}  // namespace isthmus::plan
