#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/torch/measure/kernel_grid.h"

namespace isthmus::backend {

/// One kernel at one shape. `prepare` makes its tensors and gives what runs it; `times` is how
/// often one call runs it.
struct KernelCase {
  std::string table;
  std::string point;
  bool held_out = false;
  int times = 1;
  std::function<std::function<void()>()> prepare;
};

/// Products, attention forward and backward, memory-bound kernels: the grid, and shapes beside it
/// that are held out. A product runs as a linear layer's three: forward, input and weight gradient.
/// The bytes of memory-bound kernels are those that plan counts for them (docs/calibrate.md).
std::vector<KernelCase> KernelCases(at::Device device, const KernelGrid& grid);

/// What stands in front of every kernel: an operation on almost nothing, recorded, and its
/// backward; two kernels a call.
KernelCase DispatchCase(at::Device device);
/// A backward of one recorded function: what an op of a program costs beside its kernels.
KernelCase OpIssueCase(at::Device device);
/// A mixture of a product and a memory-bound kernel of some megabytes, for ranks that run at once.
KernelCase BusyCase(at::Device device);
/// Copies 16 MiB.
KernelCase CopyCase();

}  // namespace isthmus::backend
