#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "backend/torch/modules/chunk.h"
#include "plan/program/program.h"

/// Runs one chunk on the thread-ranks of a program, forward and backward, and puts what comes out
/// of the ranks together again.
namespace isthmus::tests {

/// Global tensors by the names of parameter pieces.
using NamedTensors = std::map<std::string, at::Tensor>;

struct ChunkRequest {
  std::uint16_t module = 0;
  int virtual_stage = 0;
  /// By rank; sequences and boundary tensors whole, patches of the rank.
  std::function<backend::BlockData(base::Rank)> data;
  std::vector<at::Tensor> boundary;
  /// Gradient of the output where that isn't a loss, by rank.
  std::function<at::Tensor(base::Rank)> output_gradient;
  bool defers = false;  // weight gradients, until after the backward
};

struct ChunkResult {
  NamedTensors weights;
  NamedTensors gradients;           // summed over tp where partial, and over cp
  std::vector<at::Tensor> outputs;  // by rank
  std::vector<std::vector<at::Tensor>> boundary_gradients;  // by rank and edge
  /// By rank: what was asked of communicators in the forward and in the backward.
  std::vector<std::vector<backend::CommCall>> forward_calls;
  std::vector<std::vector<backend::CommCall>> backward_calls;
};

/// All ranks of the program run the request's chunk: the program has one module or the ranks of all
/// modules are the same.
ChunkResult RunChunk(const plan::Program& program, const ChunkRequest& request);

/// Adds the local tensor's pieces into the global ones.
void AddPieces(const backend::Parameter& parameter, const at::Tensor& local, NamedTensors& global);

}  // namespace isthmus::tests
