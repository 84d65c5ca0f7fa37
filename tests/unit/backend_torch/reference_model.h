#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "plan/model/module.h"
#include "tests/unit/backend_torch/chunk_run.h"

/// The modules once more, on one rank, written down directly in ATen with its own autograd: what
/// chunks are held against.
namespace isthmus::tests {

/// Layers of the module over one sequence x of [tokens, hidden] whose tokens attend within spans.
at::Tensor ReferenceLayers(const plan::Module& module, const NamedTensors& weights, at::Tensor x,
                           std::int64_t span);

/// Loss summed over the samples. Rows of `boundary` take the place of placeholders, in order.
at::Tensor ReferenceDecoder(const plan::Module& module, const NamedTensors& weights,
                            const backend::BlockData& data, const at::Tensor& boundary);

/// The boundary tensor, [tokens at the LLM, width of the LLM].
at::Tensor ReferenceEncoder(const plan::Module& module, const NamedTensors& weights,
                            const at::Tensor& patches);

}  // namespace isthmus::tests
