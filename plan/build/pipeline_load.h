#pragma once

#include "plan/job.h"
#include "plan/layout/stage_split.h"

namespace isthmus::plan {

/// The load of a module's pipeline as the layer split sees it, by FLOP: matrices 2·parameters a
/// token, attention 4·span·width (half when causal), each divided by the ranks that share it; one
/// pass forward, two backward (a frozen decoder one, a frozen encoder or an absent backward none),
/// one more when everything is recomputed. Encoders that inherit the decoder's layout
/// lie on its first stage with all tokens of a microbatch, not divided by cp; the head on its last.
///
/// Communication and memory-bound kernels don't enter. Needs a module with a layout of its own.
PipelineLoad LoadOf(const Job& job, int module);

}  // namespace isthmus::plan
