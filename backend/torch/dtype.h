#pragma once

#include <ATen/ATen.h>

#include "plan/model/kernel.h"

namespace isthmus::backend {

/// Throws base::Error for fp8, whose products real ranks don't have.
at::ScalarType ToTorch(plan::DType dtype);

}  // namespace isthmus::backend
