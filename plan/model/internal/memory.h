#pragma once

#include "plan/model/internal/rank_shape.h"
#include "plan/model/saved_tensors.h"

namespace isthmus::plan::internal {

/// Bytes of one saved tensor on this rank, rounded up; 0 when it isn't there.
std::int64_t SavedBytes(const RankShape& rank, const SavedTensor& tensor);

/// Bytes one layer saves for its backward: the table's rows, less what selective recompute rebuilds
/// when `after_selective`.
std::int64_t LayerContextBytes(const RankShape& rank, bool after_selective);

/// Bytes an action needs for a moment beyond inputs, outputs and context (modelling_memory §4, M1
/// to M3 and M5), and which moment that is: the gradients and gathered buffers of the one layer,
/// head or embedding that needs most, given that the context and the logits of the whole block stay
/// to the end of the op.
Transient TransientOf(const BlockShape& shape, const RankShape& rank, Action action);

}  // namespace isthmus::plan::internal
