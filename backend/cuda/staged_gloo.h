#pragma once

#include <memory>
#include <utility>

#include "backend/torch/comm/communicators.h"

namespace isthmus::backend {

/// Gloo between GPUs: every call copies its tensors to pinned memory of the host, runs there, and
/// copies back when it is waited for. For ranks that share a GPU, which NCCL refuses.
class StagedGlooFactory final : public BackendFactory {
 public:
  explicit StagedGlooFactory(std::unique_ptr<BackendFactory> gloo) : gloo_(std::move(gloo)) {}
  c10::intrusive_ptr<c10d::Backend> Make(const c10::intrusive_ptr<c10d::Store>& store, int index,
                                         int size) override;

 private:
  std::unique_ptr<BackendFactory> gloo_;
};

}  // namespace isthmus::backend
