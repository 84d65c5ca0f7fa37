#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/run_case.h"

// What a row leaves open, as scenarios beside the scored one.
namespace isthmus::studies::internal {

// One change to the scored scenario.
struct OpenCell {
  std::string what;
  AlternativeUse use = AlternativeUse::kOpen;
  std::function<void(scenarios::ScenarioSpec&)> change;
};

// Each of the cells alone; ends of ranges also together, since microbatch and vpp act on each
// other.
std::vector<Alternative> AlternativesOf(const scenarios::ScenarioSpec& scored,
                                        const std::vector<OpenCell>& cells);

// The largest microbatch that a batch of `samples_per_copy` is plausibly cut into: a power of two
// up to 4 that divides it and leaves a microbatch for every stage (with `interleaved`, a multiple
// of the stages); 1 if there is none.
std::int64_t LargestMicrobatch(std::int64_t samples_per_copy, std::int64_t num_stages,
                               bool interleaved);

}  // namespace isthmus::studies::internal
