#include "backend/torch/data/sample_order.h"

#include <algorithm>

#include "plan/model/sample_spans.h"

namespace isthmus::backend {
namespace {

/// Of the edge that leaves an encoder.
const plan::Boundary& BoundaryFrom(const plan::Program& program, std::uint16_t module) {
  return program.boundaries[program.EdgeFrom(module)];
}

/// Tokens at the LLM that the rank's lane holds: of the window, or of a microbatch of all shards.
plan::Interval LaneTokens(const plan::Program& program, std::uint16_t module, base::Rank rank,
                          std::int32_t microbatch) {
  const plan::Boundary& boundary = BoundaryFrom(program, module);
  const plan::Grid& grid = program.modules[module].grid;
  const std::vector<base::Rank> lane =
      plan::SourceBoundaryRanks(grid)[static_cast<std::size_t>(grid.IndexIn(rank, plan::kDp))];
  plan::Interval tokens = boundary.At(lane.front(), microbatch).held_forward;
  for (const base::Rank member : lane) {
    const plan::Interval& held = boundary.At(member, microbatch).held_forward;
    tokens.begin = std::min(tokens.begin, held.begin);
    tokens.end = std::max(tokens.end, held.end);
  }
  return tokens;
}

/// The samples whose tokens stand one after the other on the edge: of the window, of a microbatch
/// of all shards; homogeneous: of the rank's own.
std::vector<std::int64_t> SamplesInOrder(const plan::Program& program, std::uint16_t module,
                                         base::Rank rank, std::int32_t microbatch) {
  const plan::Workload& workload = program.workload;
  if (program.placement == plan::Placement::kHomogeneous)
    return DecoderSamples(program, module, rank, microbatch);
  std::vector<std::int64_t> samples;
  const bool window = microbatch < 0;
  const std::int64_t step = window ? workload.global_batch : workload.microbatch_size;
  const std::int64_t shards =
      window ? 1 : workload.global_batch / (program.num_microbatches * workload.microbatch_size);
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    const std::int64_t first = window ? 0 : program.FirstSample(shard, microbatch);
    for (std::int64_t slot = 0; slot < step; ++slot) samples.push_back(first + slot);
  }
  return samples;
}

}  // namespace

std::vector<std::int64_t> DecoderSamples(const plan::Program& program, std::uint16_t module,
                                         base::Rank rank, std::int64_t microbatch) {
  const int shard = program.modules[module].grid.IndexIn(rank, plan::kDp);
  std::vector<std::int64_t> samples;
  for (std::int64_t slot = 0; slot < program.workload.microbatch_size; ++slot) {
    samples.push_back(program.FirstSample(shard, microbatch) + slot);
  }
  return samples;
}

EncoderShare EncoderSpans(const plan::Program& program, std::uint16_t module, base::Rank rank,
                          std::int32_t microbatch) {
  const plan::PlacedModule& placed = program.modules[module];
  if (placed.module.llm_tokens_per_sample == 0) return {};
  const plan::SampleSpans spans = plan::LlmSpans(placed.module);
  const bool homogeneous = program.placement == plan::Placement::kHomogeneous;
  const std::vector<std::int64_t> samples = SamplesInOrder(program, module, rank, microbatch);
  plan::Interval lane;
  if (homogeneous) {
    lane.end = spans.TokensBefore(samples.back() + 1) - spans.TokensBefore(samples.front());
  } else {
    lane = LaneTokens(program, module, rank, microbatch);
  }
  EncoderShare share;
  std::int64_t begin = 0;
  for (const std::int64_t sample : samples) {
    const std::int64_t first = spans.SpansBefore(sample);
    const std::int64_t count = spans.SpansBefore(sample + 1) - first;
    for (std::int64_t span = 0; span < count; ++span) {
      if (lane.begin <= begin && begin < lane.end) share.spans.push_back({sample, span});
      begin += spans.TokenAt(first + span + 1) - spans.TokenAt(first + span);
    }
  }
  const std::int64_t cp = homogeneous ? 1 : placed.grid.size(plan::Axis::kCp);
  const std::int64_t at = homogeneous ? 0 : placed.grid.Coordinate(rank, plan::Axis::kCp);
  const std::int64_t ratio = placed.module.tokens_per_sample / placed.module.llm_tokens_per_sample;
  share.token_begin = lane.size() * at / cp * ratio;
  share.token_end = lane.size() * (at + 1) / cp * ratio;
  return share;
}

}  // namespace isthmus::backend
