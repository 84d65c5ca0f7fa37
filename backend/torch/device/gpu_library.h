#pragma once

#include <memory>

#include "backend/torch/device/device.h"

/// The border between isthmus-rank and the shared library isthmus_cuda, which is loaded by name.
namespace isthmus::backend {

/// A new device, owned by the caller. `gloo` makes communicators between hosts, for ranks that
/// share a GPU. Throws base::IoError where there is no such GPU.
using MakeGpuDeviceFunction = Device*(const GpuRequest& request,
                                      std::unique_ptr<BackendFactory> gloo);
inline constexpr const char* kMakeGpuDevice = "isthmus_make_gpu_device";

}  // namespace isthmus::backend
