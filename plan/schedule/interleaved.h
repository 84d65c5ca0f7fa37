#pragma once

#include <vector>

#include "plan/schedule/pipeline_call.h"

/// Interleaved 1F1B (Narayanan et al. 2021, arXiv:2104.04473 §2.2; Megatron-LM's schedule): pure
/// functions of a stage and of counts.
namespace isthmus::plan {

/// A stage of a pipeline whose ranks hold `num_chunks` virtual stages each: chunk c of stage s is
/// virtual stage c·num_stages + s, so what leaves the last stage enters the next chunk of the
/// first.
struct InterleavedStage {
  int stage = 0;
  int num_stages = 1;
  int num_chunks = 1;
};

/// Forwards (of one chunk each) before the first backward: 2(p−s−1) + (v−1)·g with groups of g
/// microbatches, at most all m·v; with one chunk p−s−1, as in plain 1F1B. At most one more is in
/// flight at a time.
int InterleavedWarmup(const InterleavedStage& at, int num_microbatches);

/// Most microbatches between the forward and the backward of the first virtual stage: 2g, at most
/// m; p with one chunk.
int MostInFirstChunk(const InterleavedStage& at, int num_microbatches);

/// Whether the schedule is defined. With two stages, forward and backward messages of a pair of
/// ranks go the same way and must come in one order, which groups of unequal size break.
bool CanInterleave(int num_stages, int num_chunks, int num_microbatches);

/// All calls of a stage. Microbatches go through the chunks in groups of g = p; forwards take a
/// group through chunk 0, then 1, …, backwards through the last chunk first. Where p does not
/// divide m (Megatron-LM refuses groups of p then), there are ⌊m/p⌋ groups as equal as can be, or
/// one, and g is the largest: a smaller group than p would leave the pipeline waiting for itself.
///
/// The message a forward needs is asked for when the forward before it is over, and likewise
/// backward, so in the steady phase a message has the time of a backward (a forward) to arrive.
/// Bubble at equal times and p | m: (p−1)(F+B)/v for a microbatch's F+B on one stage. With one
/// chunk this is OneForwardOneBackward. Needs CanInterleave().
std::vector<PipelineCall> InterleavedOneForwardOneBackward(const InterleavedStage& at,
                                                           int num_microbatches);

}  // namespace isthmus::plan
