#pragma once

#include <cuda_runtime.h>
#include <cupti.h>

namespace isthmus::backend {

/// Throws base::IoError with the call, the device and CUDA's own words unless `code` is success.
void CheckCuda(cudaError_t code, const char* call);
/// The same for CUPTI.
void CheckCupti(CUptiResult code, const char* call);

}  // namespace isthmus::backend
