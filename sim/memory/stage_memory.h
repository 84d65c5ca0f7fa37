#pragma once

#include <optional>
#include <vector>

#include "plan/job.h"
#include "sim/memory/memory_facts.h"
#include "traces/trace.h"

namespace isthmus::sim {

/// The peak of every pipeline stage of a job, its moment and its categories, from the job alone: no
/// program, no simulation. What a search asks thousands of times.
///
/// Sizes come from the layers' tables once per chunk, the microbatches in flight from the
/// schedule's calls: a stage with v chunks holds at most min(2(p−s−1) + (v−1)p + 1, m·v)/v of m
/// microbatches (modelling_memory §4, M1), the last one the logits of one (M2), and so on; the
/// largest sum over all calls is the peak, not a sum of peaks. Valid for jobs of one trained module
/// with a real backward and no deferred gradients of the head, where it equals the ledger of the
/// built program to the byte; nothing for others. `phase` is set, `moment` is empty. Cost:
/// microseconds, O(p·v) calls a stage: of long steps only the first microbatches are looked at,
/// since the steady phase repeats.
std::optional<std::vector<traces::MemoryPeak>> PredictStageMemory(const plan::Job& job,
                                                                  const MemoryFacts& facts);

}  // namespace isthmus::sim
