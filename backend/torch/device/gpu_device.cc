#include "backend/torch/device/device.h"
#include "backend/torch/device/gpu_library.h"
#include "base/shared_library.h"

namespace isthmus::backend {
namespace {

MakeGpuDeviceFunction* LoadGpuLibrary() {
  // Global: libtorch registers its CUDA kernels with the libtorch_cpu that is already there.
  constexpr bool kIsGlobal = true;
  return reinterpret_cast<MakeGpuDeviceFunction*>(base::LoadFunction(
      "libisthmus_cuda.so", kMakeGpuDevice,
      "ranks on GPUs need it; build with scripts/setup.sh --gpu, which brings CUDA's libraries",
      kIsGlobal));
}

}  // namespace

std::unique_ptr<Device> MakeGpuDevice(const GpuRequest& request) {
  static MakeGpuDeviceFunction* const make = LoadGpuLibrary();
  return std::unique_ptr<Device>(
      make(request, std::make_unique<GlooFactory>(request.timeout, request.reach)));
}

}  // namespace isthmus::backend
