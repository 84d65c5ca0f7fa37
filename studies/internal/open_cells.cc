#include "studies/internal/open_cells.h"

#include <utility>

namespace isthmus::studies::internal {

std::vector<Alternative> AlternativesOf(const scenarios::ScenarioSpec& scored,
                                        const std::vector<OpenCell>& cells) {
  std::vector<Alternative> alternatives;
  scenarios::ScenarioSpec together = scored;
  std::string names;
  int num_ends = 0;
  for (const OpenCell& cell : cells) {
    Alternative& alone = alternatives.emplace_back(Alternative{cell.what, cell.use, scored});
    cell.change(alone.spec);
    if (cell.use != AlternativeUse::kMidpoint) continue;
    cell.change(together);
    names += (num_ends == 0 ? "" : " and ") + cell.what;
    ++num_ends;
  }
  if (num_ends > 1) {
    alternatives.push_back({std::move(names), AlternativeUse::kMidpoint, std::move(together)});
  }
  return alternatives;
}

std::int64_t LargestMicrobatch(std::int64_t samples_per_copy, std::int64_t num_stages,
                               bool interleaved) {
  constexpr std::int64_t kLargest = 4;
  for (std::int64_t size = kLargest; size > 1; size /= 2) {
    if (samples_per_copy % size != 0) continue;
    const std::int64_t count = samples_per_copy / size;
    if (count >= num_stages && (!interleaved || count % num_stages == 0)) return size;
  }
  return 1;
}

}  // namespace isthmus::studies::internal
