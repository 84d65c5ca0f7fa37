#include "backend/torch/checkpoint/element_runs.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::backend {
namespace {

/// Row-major tensors as rows of `row` elements along the dimension that is cut, `outer` times.
struct Cut {
  std::int64_t outer = 1;  // how often the cut dimension is gone through
  std::int64_t inner = 1;  // elements of one index along it
};

Cut CutOf(const std::vector<std::int64_t>& shape, int dim) {
  Cut cut;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    if (axis < dim) cut.outer *= shape[static_cast<std::size_t>(axis)];
    if (axis > dim) cut.inner *= shape[static_cast<std::size_t>(axis)];
  }
  return cut;
}

void AddPiece(const Parameter& parameter, const ParameterPiece& piece,
              std::vector<ElementRun>& runs) {
  if (piece.dim < 0) {
    runs.push_back({&piece, 0, 0, NumElements(piece.global_shape)});
    return;
  }
  if (piece.size == 0) return;
  const auto dim = static_cast<std::size_t>(piece.dim);
  const Cut cut = CutOf(piece.global_shape, piece.dim);
  for (std::int64_t outer = 0; outer < cut.outer; ++outer) {
    const std::int64_t global_row = outer * piece.global_shape[dim] + piece.global_begin;
    const std::int64_t local_row = outer * parameter.shape[dim] + piece.local_begin;
    runs.push_back({&piece, global_row * cut.inner, local_row * cut.inner, piece.size * cut.inner});
  }
}

}  // namespace

std::int64_t NumElements(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::vector<ElementRun> RunsOf(const Parameter& parameter, std::int64_t begin, std::int64_t end) {
  ISTHMUS_CHECK(0 <= begin && begin <= end && end <= NumElements(parameter.shape),
                "{} has no elements [{}, {})", parameter.name, begin, end);
  std::vector<ElementRun> runs;
  for (const ParameterPiece& piece : parameter.pieces) AddPiece(parameter, piece, runs);
  std::vector<ElementRun> inside;
  for (const ElementRun& run : runs) {
    const std::int64_t first = std::max(run.local_begin, begin);
    const std::int64_t last = std::min(run.local_begin + run.size, end);
    if (first >= last) continue;
    inside.push_back({run.piece, run.global_begin + first - run.local_begin, first, last - first});
  }
  std::ranges::sort(inside, {}, &ElementRun::local_begin);
  return inside;
}

}  // namespace isthmus::backend
