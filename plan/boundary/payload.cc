#include <algorithm>

#include "plan/boundary/boundary.h"

namespace isthmus::plan {
namespace {

/// Of the rank that has most by `tokens_of`, over the microbatches of a step.
template <typename TokensOf>
base::Bytes Payload(const Boundary& boundary, std::int64_t num_microbatches,
                    base::Bytes element_bytes, TokensOf tokens_of) {
  // A colocated boundary moves the whole window at once.
  const bool counts_once = boundary.colocated || boundary.microbatches_differ();
  const std::int64_t tables = boundary.microbatches_differ() ? num_microbatches : 1;
  const std::int64_t times = counts_once ? 1 : num_microbatches;
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < boundary.ranks.size(); ++rank) {
    std::int64_t tokens = 0;
    for (std::int64_t microbatch = 0; microbatch < tables; ++microbatch) {
      tokens += tokens_of(boundary.At(base::Rank(rank), static_cast<std::int32_t>(microbatch)));
    }
    most = std::max(most, tokens);
  }
  return element_bytes * (most * times * boundary.width);
}

}  // namespace

const std::vector<RankBoundary>& Boundary::In(std::int32_t microbatch) const {
  if (!microbatches_differ()) return ranks;
  const std::uint32_t table = table_of_microbatch[static_cast<std::size_t>(microbatch)];
  return table == 0 ? ranks : other_ranks[table - 1];
}

base::Bytes PayloadForward(const Boundary& boundary, std::int64_t num_microbatches,
                           base::Bytes element_bytes) {
  return Payload(boundary, num_microbatches, element_bytes, [](const RankBoundary& rank) {
    return std::max(rank.held_forward.size(), rank.needed_forward.size());
  });
}

base::Bytes PayloadBackward(const Boundary& boundary, std::int64_t num_microbatches,
                            base::Bytes element_bytes) {
  return Payload(boundary, num_microbatches, element_bytes,
                 [](const RankBoundary& rank) { return rank.needed_backward.size(); });
}

std::vector<int> StepShape(const RankBoundary& rank) {
  std::vector<int> shape = {
      rank.source_leader ? 1 : 0,
      rank.destination_leader ? 1 : 0,
      static_cast<int>(rank.groups.size()),
      static_cast<int>(rank.sends_forward.size()),
      static_cast<int>(rank.receives_forward.size()),
      static_cast<int>(rank.sends_backward.size()),
      static_cast<int>(rank.receives_backward.size()),
      static_cast<int>(rank.forward.size()),
  };
  for (const std::vector<BoundaryStep>* steps : {&rank.forward, &rank.backward}) {
    for (const BoundaryStep& step : *steps) {
      shape.push_back(static_cast<int>(step.kind));
      shape.push_back(static_cast<int>(step.collective));
      shape.push_back(step.group);
    }
  }
  return shape;
}

}  // namespace isthmus::plan
