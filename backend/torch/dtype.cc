#include "backend/torch/dtype.h"

#include "base/check.h"
#include "base/error.h"

namespace isthmus::backend {

at::ScalarType ToTorch(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::kFp8:
      throw base::Error("error: precision fp8 is known but not built on real ranks");
    case plan::DType::kBf16:
      return at::kBFloat16;
    case plan::DType::kFp16:
      return at::kHalf;
    case plan::DType::kFp32:
      return at::kFloat;
    case plan::DType::kFp64:
      return at::kDouble;
  }
  ISTHMUS_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

}  // namespace isthmus::backend
