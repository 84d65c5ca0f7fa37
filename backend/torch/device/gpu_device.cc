#include <dlfcn.h>

#include <filesystem>

#include <fmt/format.h>

#include "backend/torch/device/device.h"
#include "backend/torch/device/gpu_library.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

constexpr const char* kLibrary = "libisthmus_cuda.so";

std::filesystem::path FolderOfThisProgram() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

// The library stays loaded: what it made may outlive any handle.
MakeGpuDeviceFunction* LoadGpuLibrary() {
  std::filesystem::path path = FolderOfThisProgram() / kLibrary;
  if (!std::filesystem::exists(path)) path = kLibrary;  // where the loader looks
  // Global: libtorch registers its CUDA kernels with the libtorch_cpu that is already there.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw base::IoError(
        fmt::format("error: ranks on GPUs need {}, which was not loaded: {}\n  hint: build with "
                    "scripts/setup.sh --gpu, which brings CUDA's libraries",
                    path.string(), dlerror()));
  }
  void* symbol = dlsym(library, kMakeGpuDevice);
  if (symbol == nullptr) {
    throw base::IoError(fmt::format("error: {} is of another version: it has no {}", path.string(),
                                    kMakeGpuDevice));
  }
  return reinterpret_cast<MakeGpuDeviceFunction*>(symbol);
}

}  // namespace

std::unique_ptr<Device> MakeGpuDevice(const GpuRequest& request) {
  static MakeGpuDeviceFunction* const make = LoadGpuLibrary();
  return std::unique_ptr<Device>(
      make(request, std::make_unique<GlooFactory>(request.timeout, request.reach)));
}

}  // namespace isthmus::backend
