#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/torch/comm/communicator.h"
#include "backend/torch/device/device.h"
#include "backend/torch/modules/chunk.h"
#include "backend/torch/optimizer/adam.h"
#include "backend/torch/optimizer/bucket.h"
#include "backend/torch/training_options.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// Weights, main gradients and optimizer state of one module on one rank: the buckets of all its
/// chunks, first chunk first, as the program numbers them, and the frozen weights.
///
/// The distributed optimizer: after a reduction each rank has the sum of its own part of a bucket
/// and updates that part alone; Gather() brings the others. Collectives post, but for the sum
/// over tp, which packs and returns when it is over. Belongs to one rank's thread.
/// Lifetime: the chunks outlive it.
class ModuleParameters {
 public:
  /// Lays parameters into buffers and initialises them from the seed.
  ModuleParameters(const plan::Program& program, std::uint16_t module, base::Rank rank,
                   const std::vector<Chunk*>& chunks, const TrainingOptions& options,
                   at::Device device);

  bool trained() const { return !buckets_.empty(); }
  std::vector<Bucket>& buckets() { return buckets_; }
  std::vector<Adam>& states() { return states_; }  // by bucket
  /// Of all chunks.
  const std::vector<Parameter*>& frozen() const { return frozen_; }
  /// Weights, unless they are on the host, gradients and optimizer state.
  std::int64_t num_bytes() const;

  Pending Gather(std::size_t bucket, Communicator& shards);
  Pending Reduce(std::size_t bucket, Communicator& shards);
  Pending SumReplicas(std::size_t bucket, Communicator& replicas);
  /// Gradients of parameters that every rank of tp has, after their buckets were reduced.
  void SumReplicated(Communicator& tp);
  /// Gradient of the tied embedding on the first and the last stage, before its bucket is reduced.
  Pending SumEmbedding(std::size_t bucket, Communicator& ends);

  void ZeroGradients();
  /// Of the owned gradients, each parameter of the module counted on one rank only: the sum over
  /// the module's ranks is the module's squared norm. One element, fp64, on the device.
  at::Tensor SquaredNorm() const;
  /// 1 where an owned gradient is infinite or no number, else 0. As SquaredNorm().
  at::Tensor FoundInfinity() const;
  void ScaleGradients(double factor);
  void Step(std::int64_t step, const TrainingOptions& options);

  /// Copies all weights to host memory and frees the device's, or back: there behind
  /// Device::WaitForCopies().
  void MoveToHost(Device& device);
  void MoveToDevice(Device& device);

 private:
  bool counts(const Parameter& parameter) const;
  bool is_embedding(const Parameter& parameter) const;

  const plan::PlacedModule& placed_;
  at::Device device_;
  bool first_of_tp_ = true;
  bool first_replica_ = true;
  std::vector<Bucket> buckets_;
  std::vector<Adam> states_;
  std::vector<Parameter*> frozen_;
  std::vector<at::Tensor> weight_buffers_;  // of buckets, then of frozen parameters
  std::vector<at::Tensor> on_host_;
};

}  // namespace isthmus::backend
