#include <algorithm>

#include "plan/boundary/boundary.h"

namespace isthmus::plan {
namespace {

base::Bytes Payload(const Boundary& boundary, std::int64_t tokens, std::int64_t num_microbatches,
                    base::Bytes element_bytes) {
  // A colocated boundary moves the whole window at once.
  const std::int64_t times = boundary.colocated ? 1 : num_microbatches;
  return element_bytes * (tokens * times * boundary.width);
}

}  // namespace

base::Bytes PayloadForward(const Boundary& boundary, std::int64_t num_microbatches,
                           base::Bytes element_bytes) {
  std::int64_t most = 0;
  for (const RankBoundary& rank : boundary.ranks) {
    most = std::max({most, rank.held_forward.size(), rank.needed_forward.size()});
  }
  return Payload(boundary, most, num_microbatches, element_bytes);
}

base::Bytes PayloadBackward(const Boundary& boundary, std::int64_t num_microbatches,
                            base::Bytes element_bytes) {
  std::int64_t most = 0;
  for (const RankBoundary& rank : boundary.ranks) {
    most = std::max(most, rank.needed_backward.size());
  }
  return Payload(boundary, most, num_microbatches, element_bytes);
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
