#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "topology/cluster_spec.h"

namespace isthmus::topology::internal {

/// First and last of a range of numbers.
struct Span {
  int first = 0;
  int last = 0;
};

/// The NICs that an end of a cable names. Nodes are numbered over the cluster.
struct NicEnds {
  Span nodes;
  Span indices;
  bool has_all_indices = false;  ///< however many a node has
};

/// An end of a cable, read: a switch by its number, NICs, or why it is none.
using CableEndSpec = std::variant<int, NicEnds, std::string>;
CableEndSpec ReadCableEnd(const ClusterSpec& spec, std::string_view text);

}  // namespace isthmus::topology::internal
