#include "backend/torch/modules/parameter_list.h"

#include <algorithm>

namespace isthmus::backend {

Parameter& ParameterList::Add(const std::string& name, std::vector<std::int64_t> shape) {
  parameters_.push_back(std::make_unique<Parameter>());
  Parameter& parameter = *parameters_.back();
  parameter.name = prefix_ + name;
  parameter.shape = std::move(shape);
  parameter.frozen = frozen_;
  return parameter;
}

Parameter& ParameterList::AddReplicated(const std::string& name, std::vector<std::int64_t> shape,
                                        bool partial) {
  Parameter& parameter = Add(name, shape);
  const std::int64_t size = shape.front();
  parameter.pieces.push_back(
      {.name = parameter.name, .global_shape = std::move(shape), .size = size});
  parameter.replicated_over_tp = true;
  parameter.partial_over_tp = partial;
  return parameter;
}

Parameter& ParameterList::AddCut(const Communicator& tp, const std::string& name, int dim,
                                 const std::vector<Matrix>& matrices) {
  std::vector<ParameterPiece> pieces;
  std::int64_t begin = 0;
  for (const Matrix& matrix : matrices) {
    const std::int64_t size = (dim == 0 ? matrix.rows : matrix.columns) / tp.size();
    pieces.push_back({.name = prefix_ + matrix.name,
                      .global_shape = {matrix.rows, matrix.columns},
                      .dim = dim,
                      .global_begin = tp.index() * size,
                      .local_begin = begin,
                      .size = size});
    begin += size;
  }
  const Matrix& first = matrices.front();
  const std::vector<std::int64_t> shape = dim == 0 ? std::vector<std::int64_t>{begin, first.columns}
                                                   : std::vector<std::int64_t>{first.rows, begin};
  Parameter& parameter = Add(name, shape);
  parameter.pieces = std::move(pieces);
  return parameter;
}

Parameter& ParameterList::AddTable(const Communicator& tp, const std::string& name,
                                   std::int64_t rows, std::int64_t padded_rows,
                                   std::int64_t width) {
  const std::int64_t local = padded_rows / tp.size();
  const std::int64_t begin = std::min(tp.index() * local, rows);
  Parameter& parameter = Add(name, {local, width});
  parameter.pieces.push_back({.name = parameter.name,
                              .global_shape = {rows, width},
                              .dim = 0,
                              .global_begin = begin,
                              .size = std::clamp<std::int64_t>(rows - begin, 0, local)});
  return parameter;
}

}  // namespace isthmus::backend
