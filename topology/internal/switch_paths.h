#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace isthmus::topology::internal {

/// The least cost from each switch of a custom fabric to each other.
///
/// Cost: making it is O(switches · links · log switches); memory 8 bytes a pair of switches.
class SwitchPaths {
 public:
  struct Edge {
    int a = 0;
    int b = 0;
    std::int64_t cost = 0;  ///< either way, positive
  };
  /// No path: larger than any cost, and small enough to add to it.
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max() / 4;

  SwitchPaths() = default;
  SwitchPaths(int num_switches, const std::vector<Edge>& edges);

  std::int64_t CostBetween(int a, int b) const {
    return costs_[static_cast<std::size_t>(a) * num_switches_ + static_cast<std::size_t>(b)];
  }

 private:
  std::size_t num_switches_ = 0;
  std::vector<std::int64_t> costs_;
};

}  // namespace isthmus::topology::internal
