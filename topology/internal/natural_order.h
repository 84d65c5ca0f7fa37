#pragma once

#include <string_view>

namespace isthmus::topology::internal {

/// Orders names as people number things: runs of digits by their value, "mlx5_2" before "mlx5_10".
/// A total order, names that differ in leading zeros alone as texts.
struct NaturalOrder {
  bool operator()(std::string_view a, std::string_view b) const;
};

}  // namespace isthmus::topology::internal
