#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/torch/modules/module_rank.h"
#include "backend/torch/modules/parameter.h"

namespace isthmus::backend {

/// The parameters of one unit of a chunk (stem, layer, projector, head), in the order in which they
/// lie in buffers. Addresses stay.
class ParameterList {
 public:
  ParameterList(std::string prefix, bool frozen) : prefix_(std::move(prefix)), frozen_(frozen) {}

  /// A tensor that is equal on all ranks of tp; `partial`: see Parameter::partial_over_tp.
  Parameter& AddReplicated(const std::string& name, std::vector<std::int64_t> shape, bool partial);
  /// Global matrices of these shapes, each cut along `dim` into tp equal parts, this rank's parts
  /// one after the other along that dimension.
  struct Matrix {
    std::string name;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
  };
  Parameter& AddCut(const Communicator& tp, const std::string& name, int dim,
                    const std::vector<Matrix>& matrices);
  /// A table of `rows` vectors, padded to `padded_rows`, cut by rows.
  Parameter& AddTable(const Communicator& tp, const std::string& name, std::int64_t rows,
                      std::int64_t padded_rows, std::int64_t width);

  bool frozen() const { return frozen_; }
  const std::vector<std::unique_ptr<Parameter>>& parameters() const { return parameters_; }

 private:
  Parameter& Add(const std::string& name, std::vector<std::int64_t> shape);

  std::string prefix_;
  bool frozen_ = false;
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

}  // namespace isthmus::backend
