#pragma once

#include <vector>

#include "plan/job.h"

/// Warm-up depths of a graph of pipelined modules (paper §3.4, reference §6.3).
namespace isthmus::plan {

/// Stages of every module: depth[module][stage] is the number of warm-up forwards of that stage.
///
/// Distance to the sink (the paper's rule): the longest path, in stages, from the stage to the last
/// stage of the sink. Distance from the source (Megatron-LM's code): longest path through the whole
/// graph, less the longest path from a source to the stage, less one. The two differ for joins of
/// encoders of unequal depth. Needs an acyclic graph with one sink.
std::vector<std::vector<int>> WarmupDepths(const std::vector<int>& stages_of_module,
                                           const std::vector<Edge>& edges, WarmupRule rule);

}  // namespace isthmus::plan
