#pragma once

#include <chrono>

#include "backend/torch/comm/communicators.h"

namespace isthmus::backend {

/// NCCL on one GPU. Ranks of a group must be on different GPUs. Whoever reads a result watches the
/// time (Device::WaitForCompute); behind that, c10d's watchdog ends the process where a collective
/// takes longer than twice `timeout`, or a partner is gone.
class NcclFactory final : public BackendFactory {
 public:
  NcclFactory(int device, std::chrono::milliseconds timeout) : device_(device), timeout_(timeout) {}
  c10::intrusive_ptr<c10d::Backend> Make(const c10::intrusive_ptr<c10d::Store>& store, int index,
                                         int size) override;

 private:
  int device_;
  std::chrono::milliseconds timeout_;
};

}  // namespace isthmus::backend
