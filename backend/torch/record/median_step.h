#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::backend {

/// Steps at the beginning that no figure counts: `wanted`, but at least one step is left.
std::int64_t WarmupSteps(std::size_t num_steps, std::int64_t wanted);

/// The step whose duration is the median behind the warm-up, of two the longer one. Needs a step.
std::size_t MedianStep(const std::vector<std::int64_t>& durations_ps,
                       std::int64_t num_warmup_steps);

}  // namespace isthmus::backend
