#include "backend/cuda/cuda_check.h"

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::backend {

void CheckCuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  int device = -1;
  cudaGetDevice(&device);
  throw base::IoError(
      fmt::format("error: {} on GPU {}: {}", call, device, cudaGetErrorString(code)));
}

void CheckCupti(CUptiResult code, const char* call) {
  if (code == CUPTI_SUCCESS) return;
  const char* text = "unknown error";
  cuptiGetResultString(code, &text);
  throw base::IoError(fmt::format("error: {}: {}", call, text));
}

}  // namespace isthmus::backend
