#pragma once

#include <vector>

#include "studies/validate.h"

namespace isthmus::studies {

/// Pairs of predicted rows that no one setting explains: the same layout on the same GPUs
/// (RunCase::layout), work that differs by less than 5 %, measured times that differ by more than
/// 10 % and by more than 10 points more than the predicted ones do. The largest first, without
/// those between two rows that larger ones have named already.
std::vector<Contradiction> FindContradictions(const std::vector<RowResult>& rows);

}  // namespace isthmus::studies
