#include "plan/boundary/internal/intervals.h"

#include <algorithm>

#include "base/check.h"
#include "plan/model/sample_spans.h"

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

namespace {

SampleSpans SpansOf(const BoundaryTokens& tokens) {
  return {tokens.tokens_per_sample, tokens.span_tokens, tokens.spans_of_sample};
}

/// Spans in front of part `part`.
std::int64_t PartBorder(const std::vector<std::int64_t>& before_shards, std::int64_t part,
                        std::int64_t num_parts) {
  const auto at = [&](std::int64_t shard) {
    return before_shards[static_cast<std::size_t>(shard)];
  };
  const auto num_shards = static_cast<std::int64_t>(before_shards.size()) - 1;
  if (part == num_parts) return at(num_shards);
  if (num_parts % num_shards == 0) {
    const std::int64_t parts = num_parts / num_shards;
    const std::int64_t shard = part / parts;
    return at(shard) + part % parts * (at(shard + 1) - at(shard)) / parts;
  }
  if (num_shards % num_parts == 0) return at(part * (num_shards / num_parts));
  return part * at(num_shards) / num_parts;
}

}  // namespace

std::vector<std::int64_t> SpansBeforeShards(const BoundaryTokens& tokens, int num_shards) {
  const SampleSpans spans = SpansOf(tokens);
  const std::int64_t samples = tokens.samples_per_microbatch * tokens.num_microbatches;
  std::vector<std::int64_t> before;
  for (std::int64_t shard = 0; shard <= num_shards; ++shard) {
    before.push_back(spans.SpansBefore(shard * samples));
  }
  return before;
}

std::vector<std::int64_t> SpansBeforeShards(const BoundaryTokens& tokens, int num_shards,
                                            std::int64_t microbatch) {
  const SampleSpans spans = SpansOf(tokens);
  const std::int64_t size = tokens.samples_per_microbatch;
  std::vector<std::int64_t> before{0};
  for (std::int64_t shard = 0; shard < num_shards; ++shard) {
    const std::int64_t first = (shard * tokens.num_microbatches + microbatch) * size;
    before.push_back(before.back() + spans.SpansBefore(first + size) - spans.SpansBefore(first));
  }
  return before;
}

SpanCut CutAtSpans(const BoundaryTokens& tokens, const std::vector<std::int64_t>& before_shards,
                   int num_parts) {
  ISTHMUS_CHECK(before_shards.size() >= 2 && num_parts >= 1);
  const SampleSpans spans = SpansOf(tokens);
  SpanCut cut;
  for (std::size_t shard = 0; shard + 1 < before_shards.size(); ++shard) {
    cut.shards.push_back(
        {spans.TokenAt(before_shards[shard]), spans.TokenAt(before_shards[shard + 1])});
  }
  for (int part = 0; part < num_parts; ++part) {
    cut.parts.push_back({spans.TokenAt(PartBorder(before_shards, part, num_parts)),
                         spans.TokenAt(PartBorder(before_shards, part + 1, num_parts))});
  }
  return cut;
}

}  // namespace internal
}  // namespace isthmus::plan
