#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/torch/data/batch_source.h"
#include "backend/torch/execute/boundary_transform.h"
#include "backend/torch/execute/value_table.h"
#include "backend/torch/modules/chunk.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// What the ops of a step add up on a rank.
struct StepSums {
  std::int64_t step = 0;    // of the training, from 0
  double loss_scale = 1.0;  // gradients of the loss start with it
  /// Sums over the samples of this rank, where it has the head and is the first of its tp group
  /// (tokens: of its tp×cp group), so that ranks add up to the world's.
  at::Tensor loss;  // one element, fp64; undefined: this rank adds nothing
  std::int64_t tokens = 0;
};

/// Runs Compute ops: chunks forward and backward, one unit of autograd a part.
///
/// Inputs of a part are detached leaves; nothing flows between parts but tensors. Belongs to one
/// rank's thread. Lifetime: everything it is given outlives it.
class Compute {
 public:
  /// Chunks by module and virtual stage on the rank; boundaries by edge.
  struct Parts {
    const plan::Program& program;
    base::Rank rank;
    at::Device device;
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::unique_ptr<Chunk>>& chunks;
    const std::vector<BoundaryTransform>& boundaries;
    ValueTable& values;
    BatchSource& data;
  };
  explicit Compute(const Parts& parts);

  void Run(const plan::Op& op, StepSums& sums);

 private:
  /// What an op of the module takes from the values in front of it.
  struct Inputs {
    at::Tensor hidden;
    std::vector<at::Tensor> boundary;  // by edge
  };

  void Forward(const plan::Op& op, StepSums& sums);
  void Recompute(const plan::Op& op);
  void Backward(const plan::Op& op, const StepSums& sums);
  void BackwardWeight(const plan::Op& op);
  Inputs TakeInputs(const plan::Op& op);
  /// Runs a part on leaves and returns what it keeps for its backward.
  std::shared_ptr<PartContext> RunPart(const plan::Op& op, const plan::BlockSpan& part,
                                       const Inputs& inputs, StepSums& sums);
  at::Tensor RunChunk(const plan::Op& op, const PartContext& context);
  at::Tensor OutputGradient(const plan::Op& op, const PartContext& context, const StepSums& sums);
  void WriteInputGradients(const plan::Op& op, const PartContext& context);
  void WriteBoundaryGradient(const plan::Op& op, plan::ValueId value, const at::Tensor& gradient);
  void CountLoss(const plan::Op& op, const PartContext& context, StepSums& sums) const;
  std::shared_ptr<const BlockData> DataOf(const plan::Op& op, std::int64_t step);
  void ProduceEmpty(const plan::Op& op);

  bool is_decoder(const plan::Op& op) const;
  bool has_work(const plan::Op& op) const;
  bool is_boundary(plan::ValueId value) const;
  Chunk& ChunkOf(const plan::Op& op) const { return *parts_.chunks.at({op.module, op.chunk}); }
  at::ScalarType TypeOf(const plan::Op& op) const;
  /// A colocated decoder's share of the window that is one microbatch's.
  plan::Interval Microbatch(const plan::Op& op, std::size_t edge, std::int64_t rows) const;

  Parts parts_;
  const plan::Role& role_;
  /// The last data asked for, by module.
  std::map<std::uint16_t, std::pair<std::int32_t, std::shared_ptr<const BlockData>>> data_;
  std::int64_t data_step_ = -1;
};

}  // namespace isthmus::backend
