#include "backend/torch/data/sample_order.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::backend {
namespace {

/// Index of the sample in slot `slot` of a shard's microbatch among the step's samples.
std::int64_t SampleAt(const plan::Program& program, std::int64_t shard, std::int64_t microbatch,
                      std::int64_t slot) {
  const std::int64_t size = program.workload.microbatch_size;
  return (shard * program.num_microbatches + microbatch) * size + slot;
}

/// Of the edge that leaves an encoder.
const plan::Boundary& BoundaryFrom(const plan::Program& program, std::uint16_t module) {
  return program.boundaries[program.EdgeFrom(module)];
}

/// Tokens at the LLM that the rank's lane holds: of the window, or of a microbatch of all shards.
plan::Interval LaneTokens(const plan::Program& program, std::uint16_t module, base::Rank rank) {
  const plan::Boundary& boundary = BoundaryFrom(program, module);
  const plan::Grid& grid = program.modules[module].grid;
  const std::vector<base::Rank> lane =
      plan::SourceBoundaryRanks(grid)[static_cast<std::size_t>(grid.IndexIn(rank, plan::kDp))];
  plan::Interval tokens = boundary.ranks[lane.front().index()].held_forward;
  for (const base::Rank member : lane) {
    const plan::Interval& held = boundary.ranks[member.index()].held_forward;
    tokens.begin = std::min(tokens.begin, held.begin);
    tokens.end = std::max(tokens.end, held.end);
  }
  return tokens;
}

}  // namespace

std::vector<std::int64_t> DecoderSamples(const plan::Program& program, std::uint16_t module,
                                         base::Rank rank, std::int64_t microbatch) {
  const int shard = program.modules[module].grid.IndexIn(rank, plan::kDp);
  std::vector<std::int64_t> samples;
  for (std::int64_t slot = 0; slot < program.workload.microbatch_size; ++slot) {
    samples.push_back(SampleAt(program, shard, microbatch, slot));
  }
  return samples;
}

EncoderShare EncoderSpans(const plan::Program& program, std::uint16_t module, base::Rank rank,
                          std::int32_t microbatch) {
  const plan::PlacedModule& placed = program.modules[module];
  const std::int64_t per_sample = placed.module.llm_tokens_per_sample;
  if (per_sample == 0) return {};
  const std::int64_t encoder_tokens = placed.module.tokens_per_sample;
  const std::int64_t span_tokens = placed.module.span_tokens * per_sample / encoder_tokens;
  const std::int64_t size = program.workload.microbatch_size;
  const bool homogeneous = program.placement == plan::Placement::kHomogeneous;
  plan::Interval tokens{0, size * per_sample};
  if (!homogeneous) tokens = LaneTokens(program, module, rank);
  const std::int64_t shard = homogeneous ? placed.grid.IndexIn(rank, plan::kDp) : 0;

  EncoderShare share;
  for (std::int64_t token = tokens.begin; token < tokens.end;) {
    const std::int64_t slot = token / per_sample;
    const std::int64_t within = token % per_sample;
    // A window is in the order of samples; a microbatch is of all shards, one after the other.
    const std::int64_t sample = microbatch < 0 ? slot
                                : homogeneous
                                    ? SampleAt(program, shard, microbatch, slot)
                                    : SampleAt(program, slot / size, microbatch, slot % size);
    share.spans.push_back({sample, within / span_tokens});
    token += std::min(span_tokens, per_sample - within);
  }
  const std::int64_t cp = homogeneous ? 1 : placed.grid.size(plan::Axis::kCp);
  const std::int64_t at = homogeneous ? 0 : placed.grid.Coordinate(rank, plan::Axis::kCp);
  const std::int64_t ratio = encoder_tokens / per_sample;
  share.token_begin = tokens.size() * at / cp * ratio;
  share.token_end = tokens.size() * (at + 1) / cp * ratio;
  return share;
}

}  // namespace isthmus::backend
