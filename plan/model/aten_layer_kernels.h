#pragma once

#include "plan/model/layer_kernels.h"

namespace isthmus::plan {

/// The real backend of this project (backend/torch/modules): ATen's operations, LayerNorm in one
/// kernel, everything else op by op.
const LayerKernelTable& AtenLayerKernels();

}  // namespace isthmus::plan
