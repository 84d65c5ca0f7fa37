#pragma once

#include "plan/job.h"

namespace isthmus::plan {

/// Moves the samples of a step between data parallel copies and microbatches of the LLM, so that
/// each has near equal work for encoders: BalancedOrder() by what a sample's images and clips cost,
/// FLOP of all encoders whose samples differ together (forward, and backward where they are
/// trained). The LLM's sequences are equally long. Fills Workload::sample_order, and puts every
/// encoder's counts into that order; a job whose samples are alike stays as it is.
/// A function of the job alone. Needs samples in the order in which they were drawn.
void BalanceSamples(Job& job);

}  // namespace isthmus::plan
