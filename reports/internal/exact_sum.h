#pragma once

#include <span>

namespace isthmus::reports {

/// Turns weights >= 0 into fractions that add up to exactly 1 in any order. All 0 stays 0.
///
/// Fractions are whole multiples of 2^-53, so no sum of them rounds; the largest takes what is left
/// over. Each differs from the weight over the sum by at most a few times 2^-53.
void MakeFractions(std::span<double> weights);

}  // namespace isthmus::reports
