#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "plan/program/program.h"

/// Which samples of a step a rank works on. Follows from the order of the flattened tokens of
/// boundaries (LLM data-parallel shard, microbatch, slot, token): place `shard · microbatches ·
/// microbatch_size + microbatch · microbatch_size + slot` of the global batch; which sample stands
/// there, plan::Workload::sample_order says. The set over all ranks is the global batch in every
/// layout.
namespace isthmus::backend {

/// Places in the global batch of the samples in a decoder's microbatch, in slot order.
std::vector<std::int64_t> DecoderSamples(const plan::Program& program, std::uint16_t module,
                                         base::Rank rank, std::int64_t microbatch);

/// A span (image, clip) of a sample.
struct SampleSpan {
  std::int64_t sample = 0;  // its place in the global batch
  std::int64_t span = 0;    // within the sample
  friend bool operator==(const SampleSpan&, const SampleSpan&) = default;
};

/// What an encoder's rank encodes of a microbatch (-1: of the whole window).
struct EncoderShare {
  std::vector<SampleSpan> spans;  // of the lane, in order
  /// Of the lane's encoder tokens, those of this rank over cp: [begin, end).
  std::int64_t token_begin = 0;
  std::int64_t token_end = 0;
};
EncoderShare EncoderSpans(const plan::Program& program, std::uint16_t module, base::Rank rank,
                          std::int32_t microbatch);

}  // namespace isthmus::backend
