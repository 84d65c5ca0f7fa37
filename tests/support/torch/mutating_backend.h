#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>

#include "backend/torch/comm/communicators.h"

/// Communicators that do their work wrongly where a test tells them to.
namespace isthmus::tests {

/// What is wrong, applied to the tensor that a rank puts in or gets out. Null: nothing.
struct Mutation {
  std::function<void(const at::Tensor& tensor)> sent;
  std::function<void(const at::Tensor& tensor)> received;
};

/// Gloo, but for all-gathers, all-to-alls and messages while `mutation` has members.
///
/// Collectives that are mutated wait for their end, and what is sent is a copy. Lifetime: the
/// mutation outlives the backends; it may change between calls, from the rank's own thread.
class MutatingFactory final : public backend::BackendFactory {
 public:
  explicit MutatingFactory(const Mutation& mutation) : mutation_(mutation) {}
  c10::intrusive_ptr<c10d::Backend> Make(const c10::intrusive_ptr<c10d::Store>& store, int index,
                                         int size) override;

 private:
  const Mutation& mutation_;
};

}  // namespace isthmus::tests
