#pragma once

#include <cstdint>
#include <vector>

#include "backend/torch/modules/parameter.h"

namespace isthmus::backend {

/// Elements that lie one after the other both in a parameter's local tensor and in a global one.
struct ElementRun {
  const ParameterPiece* piece = nullptr;
  std::int64_t global_begin = 0;  // in the row-major global tensor
  std::int64_t local_begin = 0;   // in the row-major local tensor
  std::int64_t size = 0;
};

/// Where the local elements [begin, end) of a parameter lie in global tensors, in local order.
/// Padding lies nowhere. The runs point into the parameter's pieces.
/// Cost: a run for each piece that is whole or cut along dimension 0, one a row for the others.
std::vector<ElementRun> RunsOf(const Parameter& parameter, std::int64_t begin, std::int64_t end);

/// Product of the dimensions.
std::int64_t NumElements(const std::vector<std::int64_t>& shape);

}  // namespace isthmus::backend
