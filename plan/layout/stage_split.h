#pragma once

#include <vector>

/// How many layers each stage of a pipeline gets.
namespace isthmus::plan {

/// Work of a pipeline in units of one of its layers (all passes of a microbatch on a rank).
struct PipelineLoad {
  int num_layers = 0;
  int num_stages = 1;
  double first_extra = 0;  ///< embedding, and encoders that run on the first stage
  double last_extra = 0;   ///< head and loss on the last stage
};

/// Layers per stage such that the slowest stage has the least work, when only the first and the
/// last stage may differ from the others; of equal splits the one nearest to an even one. Layers
/// that don't divide evenly over the stages between go to the earlier ones.
///
/// Needs num_layers ≥ num_stages ≥ 1. Every stage gets at least one layer. Cost: O(layers² /
/// stages).
std::vector<int> BalancedSplit(const PipelineLoad& load);

}  // namespace isthmus::plan
