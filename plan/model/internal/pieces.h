#pragma once

#include "plan/model/internal/rank_shape.h"
#include "plan/model/internal/segment_list.h"

/// The pieces a block is made of, each as segments in execution order.
namespace isthmus::plan::internal {

enum class AttentionPass { kForward, kRecompute, kBackward };

/// The attention core: one segment, or with cp > 1 a ring and its merge traffic or a gather before
/// it.
void AddAttention(const RankShape& rank, AttentionPass pass, SegmentList& list);
/// Its FLOP as the model needs them: causal halved, backward twice the forward.
double AttentionModelFlops(const RankShape& rank);

void AddLayerForward(const RankShape& rank, SegmentList& list);
void AddLayerBackward(const RankShape& rank, Pass pass, SegmentList& list);

/// Patch embedding and positions of an encoder, or the token embedding.
void AddStemForward(const RankShape& rank, SegmentList& list);
/// `weights`: of the embedding; without, a decoder gathers the gradient of its boundary tensors.
void AddStemBackward(const RankShape& rank, bool weights, SegmentList& list);

/// Linear layers by turns column- and row-parallel, GELU between them, the output whole on every
/// rank. `input_gradient`: somebody upstream needs the gradient of the projector's input.
void AddProjectorForward(const BlockShape& shape, const RankShape& rank, SegmentList& list);
void AddProjectorBackward(const BlockShape& shape, const RankShape& rank, Pass pass,
                          SegmentList& list);

/// Final norm, LM head, cross entropy.
void AddHeadForward(const RankShape& rank, SegmentList& list);
void AddHeadBackward(const RankShape& rank, Pass pass, SegmentList& list);

/// FLOP of an action as the model needs them, this rank's share (layers.h, DescribeWork).
base::Flops ModelFlops(const BlockShape& shape, const RankShape& rank, Action action);

/// The linear layers of a transformer layer, as DescribeWork and the FLOP counts see them.
Linear QkvLinear(const RankShape& rank);
Linear OutputLinear(const RankShape& rank);
Linear Fc1Linear(const RankShape& rank);
Linear Fc2Linear(const RankShape& rank);

}  // namespace isthmus::plan::internal
