#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend/torch/comm/communicators.h"
#include "backend/torch/modules/parameter.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// Data of one microbatch (colocated encoders: of the window) as a rank of the module needs it.
struct BlockData {
  // Encoder stem: [tokens, input_width], this rank's part over cp, whole on every tp rank.
  at::Tensor patches;
  // Decoder stem: [samples, sequence] token ids, whole on every cp rank; where `placeholder[e]` of
  // edge e are true, the boundary tensor's rows take the place of the embedding, in order.
  at::Tensor tokens;
  std::vector<at::Tensor> placeholders;  // by incoming edge: [samples, sequence] bool
  // Decoder head: [samples, sequence], whole; labels of masked positions are ignored.
  at::Tensor labels;
  at::Tensor loss_mask;
  std::int64_t num_tokens = 0;  // encoders: tokens of the lane on this cp rank
};

/// What flows into a part of a chunk.
struct PartInputs {
  // From the part or stage in front; undefined at the first part. In front of a decoder's stem is
  // only an LLM-side projector: where it is a part of its own, what it returned.
  at::Tensor hidden;
  // LLM-side projector and decoder stem: by incoming edge, [tokens, width], whole on every tp and
  // cp rank; undefined or 0 rows: no such tokens. Needed by both where they are parts of their own.
  std::vector<at::Tensor> boundary;
  const BlockData* data = nullptr;
};

/// Weight gradients that were put off: run in order.
using DeferredWork = std::vector<std::function<void()>>;

/// A virtual stage of a module on one rank, in libtorch.
///
/// Activations are [tokens, hidden], cut over tp under sequence parallelism; behind an encoder-side
/// projector whole on every rank. Inner collectives are those of plan::DescribeWork, in its order.
/// Parameters are laid into buffers by whoever owns them: ParametersOf() before any Forward().
/// Backward is autograd's: gradients of weights are added to Parameter::main_gradient by the
/// functions themselves, inputs get theirs as autograd leaves.
/// Belongs to one rank's thread. Lifetime: program and communicators outlive it.
class Chunk {
 public:
  virtual ~Chunk() = default;

  /// Parameters of a bucket of the stage, in the order in which they lie in its buffer.
  virtual std::vector<Parameter*> ParametersOf(std::size_t bucket) = 0;
  virtual std::vector<Parameter*> FrozenParameters() = 0;

  /// Runs the units of `part` and returns what flows on; for a head the sum of the loss over the
  /// rank's valid tokens (equal on the ranks of tp), a scalar in at least fp32.
  virtual at::Tensor Forward(const plan::BlockSpan& part, const PartInputs& inputs) = 0;

  /// While set, backwards of linear layers put their weight gradient off into `deferred`.
  virtual void Defer(DeferredWork* deferred) = 0;
};

struct ChunkOptions {
  std::uint16_t module = 0;
  int virtual_stage = 0;
  base::Rank rank{0};
  at::Device device = at::kCPU;
};

std::unique_ptr<Chunk> MakeChunk(const plan::Program& program, const ChunkOptions& options,
                                 Communicators& communicators);

/// Fills parameters with values that depend on (seed, piece name, global index) only: normal with
/// `std_dev` for matrices and embeddings (output layers with std_dev / sqrt(2 · layers)), ones for
/// scales, zeros for shifts and padding.
void InitializeParameters(const std::vector<Parameter*>& parameters, std::uint64_t seed,
                          double std_dev, int num_layers);

}  // namespace isthmus::backend
