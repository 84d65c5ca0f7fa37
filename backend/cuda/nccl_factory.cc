#include "backend/cuda/nccl_factory.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace isthmus::backend {

c10::intrusive_ptr<c10d::Backend> NcclFactory::Make(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int index, int size) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  // Device::WaitForCompute() comes first and says in which op; c10d's watchdog ends the process.
  options->timeout = 2 * timeout_;
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, index, size, options);
  // Communicators made lazily, each at its first call, can deadlock: make this one now.
  backend->eagerConnectSingleDevice(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_)));
  return backend;
}

}  // namespace isthmus::backend
