#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/torch/comm/communicator.h"
#include "backend/torch/modules/chunk.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// A unit of autograd between its forward and its backward: what a context or checkpoint holds.
struct PartContext {
  plan::BlockSpan span;
  std::shared_ptr<const BlockData> data;
  at::Tensor hidden;                 // detached input
  std::vector<at::Tensor> boundary;  // detached inputs by edge
  at::Tensor output;                 // with its graph; undefined before a recompute
};

/// What a storage of the program is on this rank at the moment; which members are in use, its kind
/// says.
struct HeldValue {
  at::Tensor tensor;      // activations, gradients, scalars (one element)
  plan::Interval tokens;  // boundary tensors: the rows' places among the boundary's tokens
  std::shared_ptr<PartContext> context;
  DeferredWork deferred;  // gradients of logits: the weight gradient that waits
  plan::WorldScalar scalar = plan::WorldScalar::kTokens;
  std::vector<Pending> pending;            // to be waited for before anything is read
  std::function<void(HeldValue&)> finish;  // then run once
};

/// The values of one rank's program. Versions of a storage share its place, as they share memory.
///
/// Invariant: a storage that is not persistent is empty before its first producer and after its
/// last user. Belongs to one rank's thread. Lifetime: the role outlives it.
class ValueTable {
 public:
  explicit ValueTable(const plan::Role& role);

  HeldValue& At(plan::ValueId value) { return held_[role_.values[value].storage]; }
  const plan::Storage& StorageOf(plan::ValueId value) const {
    return role_.storages[role_.values[value].storage];
  }
  /// Waits for communication that makes the values `op` consumes.
  void Wait(const plan::Op& op);
  /// Waits for everything that is still under way.
  void WaitForAll();
  /// Lets go of what nothing behind op `index` uses.
  void ReleaseAfter(std::uint32_t index);
  /// Of tensors that are values now; what contexts hold beyond their inputs is not counted.
  std::int64_t held_bytes() const { return held_bytes_; }
  /// Counts the tensors of values that `op` produced.
  void CountProduced(const plan::Op& op);

 private:
  void Finish(HeldValue& value);
  void Count(plan::StorageId storage);

  const plan::Role& role_;
  std::vector<HeldValue> held_;                             // by StorageId
  std::vector<std::int64_t> bytes_;                         // by StorageId, as counted
  std::vector<std::vector<plan::StorageId>> last_used_by_;  // by op
  std::int64_t held_bytes_ = 0;
};

}  // namespace isthmus::backend
