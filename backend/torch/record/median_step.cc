#include "backend/torch/record/median_step.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace isthmus::backend {

std::int64_t WarmupSteps(std::size_t num_steps, std::int64_t wanted) {
  return std::min(wanted, std::max<std::int64_t>(static_cast<std::int64_t>(num_steps) - 1, 0));
}

std::size_t MedianStep(const std::vector<std::int64_t>& durations_ps,
                       std::int64_t num_warmup_steps) {
  std::vector<std::pair<std::int64_t, std::size_t>> steps;
  const std::int64_t warmup = WarmupSteps(durations_ps.size(), num_warmup_steps);
  for (auto at = static_cast<std::size_t>(warmup); at < durations_ps.size(); ++at) {
    steps.emplace_back(durations_ps[at], at);
  }
  ISTHMUS_CHECK(!steps.empty(), "no step has run");
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return middle->second;
}

}  // namespace isthmus::backend
