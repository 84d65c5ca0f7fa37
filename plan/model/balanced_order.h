#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace isthmus::plan {

/// Into how many equal parts the samples of a step are dealt: `num_shards` data parallel copies of
/// the LLM, each with `num_microbatches` of `microbatch_size` samples.
struct SampleParts {
  std::int64_t num_shards = 1;
  std::int64_t num_microbatches = 1;
  std::int64_t microbatch_size = 1;

  std::int64_t num_samples() const { return num_shards * num_microbatches * microbatch_size; }
};

/// Which sample stands at each place of the global batch (shard, microbatch, slot), so that shards,
/// and within them microbatches, have near equal loads.
///
/// Longest first (Graham 1969), with room for equally many samples everywhere: samples in the order
/// of falling load, of equal ones the lower number first, each go to the shard with the least load
/// so far, there to the microbatch with the least, of equal ones to that which has the least over
/// all shards; then to the lower index. In a microbatch they stand in the order of their numbers.
/// Where the order as drawn is as good (by the largest shard, then the largest microbatch of one
/// shard, then of all), it stays: the answer is empty, as if no sample had moved.
/// Needs a load ≥ 0 for each of parts.num_samples(). Cost: O(n · (log n + shards + microbatches)).
std::vector<std::int32_t> BalancedOrder(std::span<const std::int64_t> loads,
                                        const SampleParts& parts);

}  // namespace isthmus::plan
