#pragma once

#include <vector>

#include "plan/schedule/pipeline_call.h"

/// 1F1B: pure functions of a stage's warm-up depth and the number of microbatches.
namespace isthmus::plan {

/// Warm-up forwards, then one forward and one backward in turn, then the backwards that are left
/// (Megatron-LM's order of exchanges: paired in the steady phase, so that a message round the loop
/// has no slack). `warmup_depth` is the number of stages behind this one; the number of warm-up
/// forwards is min(warmup_depth, num_microbatches). At most warmup_depth + 1 microbatches are in
/// flight. Bubble at equal times: (p−1)/(m+p−1).
std::vector<PipelineCall> OneForwardOneBackward(int warmup_depth, int num_microbatches);

}  // namespace isthmus::plan
