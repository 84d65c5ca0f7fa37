#include "plan/boundary/internal/intervals.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::plan {

std::string ToText(BoundaryCase boundary_case) {
  switch (boundary_case) {
    case BoundaryCase::kLocal:
      return "local";
    case BoundaryCase::kEqual:
      return "equal";
    case BoundaryCase::kFanIn:
      return "fan-in";
    case BoundaryCase::kFanOut:
      return "fan-out";
    case BoundaryCase::kIrregular:
      return "irregular";
  }
  ISTHMUS_CHECK(false, "boundary case {}", static_cast<int>(boundary_case));
}

namespace internal {

Interval Intersect(const Interval& a, const Interval& b) {
  const Interval common{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return common.begin < common.end ? common : Interval{};
}

bool Contains(const Interval& outer, const Interval& inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

Interval Slice(const Interval& whole, int index, int parts) {
  return {whole.begin + whole.size() * index / parts,
          whole.begin + whole.size() * (index + 1) / parts};
}

std::vector<Interval> CutAtSpans(const BoundaryTokens& tokens, std::int64_t num_samples,
                                 int num_parts) {
  ISTHMUS_CHECK(tokens.tokens_per_sample >= 0 && num_samples >= 0 && num_parts >= 1);
  ISTHMUS_CHECK(tokens.span_tokens >= 1 || tokens.tokens_per_sample == 0,
                "spans of {} tokens in samples of {}", tokens.span_tokens,
                tokens.tokens_per_sample);
  const std::int64_t spans_per_sample =
      tokens.tokens_per_sample == 0
          ? 0
          : (tokens.tokens_per_sample + tokens.span_tokens - 1) / tokens.span_tokens;
  const std::int64_t num_spans = spans_per_sample * num_samples;
  const auto token_at = [&](std::int64_t span) -> std::int64_t {
    if (spans_per_sample == 0) {
      return 0;
    }
    return span / spans_per_sample * tokens.tokens_per_sample +
           span % spans_per_sample * tokens.span_tokens;
  };
  std::vector<Interval> parts;
  parts.reserve(static_cast<std::size_t>(num_parts));
  for (std::int64_t part = 0; part < num_parts; ++part) {
    parts.push_back(
        {token_at(part * num_spans / num_parts), token_at((part + 1) * num_spans / num_parts)});
  }
  return parts;
}

}  // namespace internal
}  // namespace isthmus::plan
