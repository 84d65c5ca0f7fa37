#include "tests/unit/backend_torch/chunk_run.h"

#include <torch/csrc/autograd/autograd.h>

#include <mutex>

#include "backend/torch/dtype.h"
#include "tests/support/torch_ranks.h"

namespace isthmus::tests {
namespace {

/// Gives every parameter storage of its own, and its initial values.
std::vector<backend::Parameter*> LayOut(backend::Chunk& chunk, const plan::PlacedModule& placed,
                                        int virtual_stage) {
  const plan::ModuleSettings& settings = placed.module.settings;
  const auto& buckets = placed.contents[static_cast<std::size_t>(virtual_stage)].buckets;
  std::vector<backend::Parameter*> all = chunk.FrozenParameters();
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (backend::Parameter* parameter : chunk.ParametersOf(bucket)) {
      parameter->main_gradient =
          at::zeros(parameter->shape, backend::ToTorch(settings.gradient_dtype));
      all.push_back(parameter);
    }
  }
  for (backend::Parameter* parameter : all) {
    parameter->weight = at::empty(parameter->shape, backend::ToTorch(settings.precision));
  }
  backend::InitializeParameters(all, 7, 0.3, placed.module.transformer.num_layers);
  return all;
}

void RunBackward(backend::Chunk& chunk, const ChunkRequest& request, base::Rank rank,
                 const at::Tensor& output) {
  backend::DeferredWork deferred;
  if (request.defers) chunk.Defer(&deferred);
  const at::Tensor gradient =
      request.output_gradient ? request.output_gradient(rank) : at::ones_like(output);
  torch::autograd::backward({output}, {gradient});
  chunk.Defer(nullptr);
  for (const auto& work : deferred) work();
}

}  // namespace

void AddPieces(const backend::Parameter& parameter, const at::Tensor& local, NamedTensors& global) {
  for (const backend::ParameterPiece& piece : parameter.pieces) {
    at::Tensor& whole = global[piece.name];
    if (!whole.defined()) whole = at::zeros(piece.global_shape, at::kDouble);
    const std::int64_t dim = std::max(piece.dim, 0);
    whole.narrow(dim, piece.global_begin, piece.size)
        .add_(local.narrow(dim, piece.local_begin, piece.size));
  }
}

ChunkResult RunChunk(const plan::Program& program, const ChunkRequest& request) {
  const plan::PlacedModule& placed = program.modules[request.module];
  const auto num_ranks = static_cast<std::size_t>(program.num_ranks);
  ChunkResult result;
  result.outputs.resize(num_ranks);
  result.boundary_gradients.resize(num_ranks);
  result.forward_calls.resize(num_ranks);
  result.backward_calls.resize(num_ranks);
  std::mutex mutex;
  RunOnRanks(program, [&](base::Rank rank, backend::Communicators& communicators) {
    const auto chunk = backend::MakeChunk(
        program, {.module = request.module, .virtual_stage = request.virtual_stage, .rank = rank},
        communicators);
    const auto parameters = LayOut(*chunk, placed, request.virtual_stage);
    const backend::BlockData data = request.data(rank);
    backend::PartInputs inputs{.data = &data};
    for (const at::Tensor& boundary : request.boundary) {
      inputs.boundary.push_back(boundary.clone().set_requires_grad(true));
    }
    const auto& contents = placed.contents[static_cast<std::size_t>(request.virtual_stage)];
    communicators.RecordCalls(&result.forward_calls[rank.index()]);
    const at::Tensor output =
        chunk->Forward({.block = contents.block, .first_layer = contents.first_layer}, inputs);
    communicators.RecordCalls(&result.backward_calls[rank.index()]);
    if (output.requires_grad()) RunBackward(*chunk, request, rank, output);
    communicators.RecordCalls(nullptr);
    result.outputs[rank.index()] = output.detach();
    for (const at::Tensor& boundary : inputs.boundary) {
      result.boundary_gradients[rank.index()].push_back(boundary.grad());
    }
    const bool first_tp = placed.grid.Coordinate(rank, plan::Axis::kTp) == 0;
    const bool first_cp = placed.grid.Coordinate(rank, plan::Axis::kCp) == 0;
    const std::lock_guard lock(mutex);
    for (const backend::Parameter* parameter : parameters) {
      const bool counts = !parameter->replicated_over_tp || first_tp;
      if (counts && first_cp) AddPieces(*parameter, parameter->weight, result.weights);
      if (parameter->frozen) continue;
      if (counts || parameter->partial_over_tp) {
        AddPieces(*parameter, parameter->main_gradient, result.gradients);
      }
    }
  });
  return result;
}

}  // namespace isthmus::tests
