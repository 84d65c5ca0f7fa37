#include "reports/internal/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace isthmus::reports {

void MakeFractions(std::span<double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(total > 0)) return;
  constexpr double kUnitsOfOne = 0x1p53;
  double left = kUnitsOfOne;
  for (double& weight : weights) {
    weight = std::round(weight / total * kUnitsOfOne);
    left -= weight;
  }
  *std::max_element(weights.begin(), weights.end()) += left;
  for (double& weight : weights) weight /= kUnitsOfOne;
}

}  // namespace isthmus::reports
