#pragma once

#include <cstdint>
#include <vector>

namespace isthmus::studies {

/// Work of a pipeline in units of one LLM layer (forward and backward of a microbatch on a rank).
struct PipelineLoad {
  std::int64_t num_layers = 0;
  std::int64_t num_stages = 1;
  double first_extra = 0;  ///< an encoder on the first stage
  double last_extra = 0;   ///< head and loss on the last stage
};

/// Layers per stage such that the slowest stage has the least work, when only the first and the
/// last stage may differ from the others; of equal splits the one nearest to an even one. Layers
/// that don't divide evenly over the stages between go to the earlier ones.
///
/// Needs num_layers ≥ num_stages ≥ 1. Every stage gets at least one layer.
std::vector<std::int64_t> BalancedSplit(const PipelineLoad& load);

}  // namespace isthmus::studies
