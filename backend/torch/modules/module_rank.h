#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "backend/torch/comm/communicator.h"
#include "backend/torch/modules/chunk.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// A module on one rank: what all its layers need to know of who takes part and in which types.
///
/// Lifetime: the program and the communicators outlive it. Belongs to the rank's thread.
struct ModuleRank {
  const plan::Module* module = nullptr;
  Communicator* tp = nullptr;
  Communicator* cp = nullptr;  // of one member where tokens are not divided by cp
  std::shared_ptr<Communicator> alone;
  bool sequence_parallel = false;     // only with tp > 1
  bool overlaps = false;              // collectives of linear backwards run beside their products
  at::ScalarType dtype = at::kFloat;  // of activations and weights
  at::ScalarType statistics = at::kFloat;  // of norms, softmax and loss: fp32, fp64 in fp64 runs
  at::Device device = at::kCPU;
  std::int64_t sequence_length = 0;  // of the decoder's samples
  /// A leaf without values: makes functions of trained weights part of the graph, whose inputs may
  /// need no gradient.
  at::Tensor anchor;
  DeferredWork* deferred = nullptr;

  const plan::Transformer& transformer() const { return module->transformer; }
  bool is_decoder() const { return module->kind == plan::ModuleKind::kDecoder; }
  /// The anchor for a function of `parameter`: undefined for frozen ones.
  at::Tensor AnchorOf(const Parameter& parameter) const {
    return parameter.frozen ? at::Tensor() : anchor;
  }
};

/// Throws base::Error where the module has settings that real ranks don't know, naming them.
ModuleRank DescribeModuleRank(const plan::Program& program, const ChunkOptions& options,
                              Communicators& communicators);

}  // namespace isthmus::backend
