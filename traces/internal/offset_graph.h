#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::traces::internal {

/// A measured x[one] - x[other].
struct Difference {
  std::uint32_t one = 0;
  std::uint32_t other = 0;
  double value = 0;
  double weight = 1;
};

/// By node, the lowest node it is connected with.
std::vector<std::uint32_t> RootsOf(const std::vector<Difference>& differences, std::size_t count);

/// x[0 … count - 1] that minimise the sum of weight · (x[one] - x[other] - value)², with the lowest
/// node of each connected part at 0.
///
/// Conjugate gradients, started from differences added up along a spanning tree: exact where they
/// agree. Cost: O(count · differences) at most.
std::vector<double> SolveOffsets(const std::vector<Difference>& differences, std::size_t count);

}  // namespace isthmus::traces::internal
