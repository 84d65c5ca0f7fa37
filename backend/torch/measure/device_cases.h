#pragma once

#include <functional>
#include <vector>

#include "backend/torch/device/device.h"
#include "backend/torch/measure/kernel_grid.h"
#include "backend/torch/measure/stopwatch.h"
#include "traces/measured_row.h"

/// What a device with a clock and memory of its own takes, alone.
namespace isthmus::backend {

struct DevicePlan {
  KernelGrid grid;
  double budget_s = 20e-3;         // of samples a kernel
  double clock_s = 60;             // of the loop that shows the sustained clock
  std::int64_t clock_side = 8192;  // of its products
  std::int64_t copied_bytes = 64 << 20;
};

/// Seconds of a call of `run` by the device's marks, calls one behind the other without a pause:
/// where launching takes longer than running, that is what the host needs.
///
/// Two calls to warm up; then samples of as many calls as take two milliseconds, until `budget_s`
/// is used up: at least three, at most twenty-five.
Samples TimeOnDevice(Device& device, const std::function<void()>& run, double budget_s);

/// Rows of `dispatch`, `op_issue`, kernels, copies each way, memory, and of `clock.bf16`: a product
/// in the first third of a second (`burst`) and in the last third of the loop (`sustained`), when
/// power and temperature have settled. Medians.
std::vector<traces::MeasuredRow> MeasureDevice(Device& device, const DevicePlan& plan);

}  // namespace isthmus::backend
