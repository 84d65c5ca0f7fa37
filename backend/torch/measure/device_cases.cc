#include "backend/torch/measure/device_cases.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "backend/torch/measure/kernel_cases.h"

namespace isthmus::backend {
namespace {

using traces::MeasuredRow;

constexpr double kSampleTime = 2e-3;
constexpr std::size_t kFewestSamples = 3;
constexpr std::size_t kMostSamples = 25;
constexpr double kBurstTime = 1.0 / 3;

// Seconds of all calls together.
double TimeCalls(Device& device, const std::function<void()>& run, std::int64_t calls) {
  const Mark begin = device.Record();
  for (std::int64_t call = 0; call < calls; ++call) run();
  const Mark end = device.Record();
  device.Synchronize();
  const double time = 1e-12 * static_cast<double>(device.TimeOf(end) - device.TimeOf(begin));
  device.ForgetMarks();
  return std::max(time, 1e-9);
}

std::int64_t CallsOf(Device& device, const std::function<void()>& run) {
  run();
  run();
  device.Synchronize();
  return static_cast<std::int64_t>(std::ceil(kSampleTime / TimeCalls(device, run, 1)));
}

MeasuredRow Measure(Device& device, const KernelCase& one, double budget_s) {
  const at::NoGradGuard no_grad;
  Samples samples = TimeOnDevice(device, one.prepare(), budget_s);
  for (double& value : samples.values) value /= one.times;
  return samples.ToMedianRow(one.table, one.point, one.held_out);
}

void AddClock(Device& device, const DevicePlan& plan, std::vector<MeasuredRow>& rows) {
  const auto options = at::TensorOptions(device.torch_device()).dtype(at::kBFloat16);
  const at::Tensor x = at::randn({plan.clock_side, plan.clock_side}, options);
  const std::function<void()> run = [&x] { x.mm(x); };
  const std::int64_t calls = CallsOf(device, run);
  Samples burst;
  Samples all;
  const double begin = WallTime();
  while (WallTime() - begin < plan.clock_s || all.values.size() < kFewestSamples) {
    all.values.push_back(TimeCalls(device, run, calls) / static_cast<double>(calls));
    if (WallTime() - begin < kBurstTime) burst.values.push_back(all.values.back());
  }
  if (burst.values.empty()) burst.values.push_back(all.values.front());
  all.values.erase(all.values.begin(),
                   all.values.begin() + static_cast<std::ptrdiff_t>(all.values.size() * 2 / 3));
  rows.push_back(burst.ToMedianRow("clock.bf16", "burst"));
  rows.push_back(all.ToMedianRow("clock.bf16", "sustained"));
}

// Seconds between marks around a copy.
double TimeCopy(Device& device, const std::function<void()>& copy) {
  device.Synchronize();
  const Mark begin = device.Record();
  copy();
  const Mark end = device.RecordCopies();
  device.WaitForCopies();
  device.Synchronize();
  const double time = 1e-12 * static_cast<double>(device.TimeOf(end) - device.TimeOf(begin));
  device.ForgetMarks();
  return std::max(time, 1e-9);
}

void AddCopies(Device& device, const DevicePlan& plan, std::vector<MeasuredRow>& rows) {
  constexpr int kSamples = 9;
  const auto options = at::TensorOptions(device.torch_device()).dtype(at::kByte);
  const at::Tensor here = at::ones({plan.copied_bytes}, options);
  const at::Tensor little = at::ones({8}, options);
  at::Tensor host = device.CopyToHost(here);  // also makes the pinned memory that is used again
  device.WaitForCopies();
  Samples latency;
  Samples to_host;
  Samples to_device;
  for (int sample = 0; sample < kSamples; ++sample) {
    latency.values.push_back(TimeCopy(device, [&] { device.CopyToHost(little); }));
    to_device.values.push_back(TimeCopy(device, [&] { device.CopyFromHost(here, host); }));
    host = at::Tensor();
    to_host.values.push_back(TimeCopy(device, [&] { host = device.CopyToHost(here); }));
  }
  for (Samples* samples : {&to_host, &to_device}) {
    for (double& value : samples->values) value /= static_cast<double>(plan.copied_bytes);
  }
  rows.push_back(latency.ToMedianRow("copy.latency", ""));
  rows.push_back(to_host.ToMedianRow("copy.to_host", ""));
  rows.push_back(to_device.ToMedianRow("copy.to_device", ""));
}

// Behind the kernels, whose tensors are gone: what their libraries keep is left.
void AddMemory(const Device& device, std::vector<MeasuredRow>& rows) {
  const DeviceMemory memory = device.memory();
  rows.push_back({.table = "device.memory",
                  .value = static_cast<double>(memory.capacity_bytes),
                  .num_samples = 1});
  rows.push_back({.table = "device.workspace",
                  .value = static_cast<double>(memory.allocated_bytes),
                  .num_samples = 1});
}

}  // namespace

Samples TimeOnDevice(Device& device, const std::function<void()>& run, double budget_s) {
  const std::int64_t calls = CallsOf(device, run);
  Samples samples;
  double used = 0;
  while (samples.values.size() < kMostSamples &&
         (used < budget_s || samples.values.size() < kFewestSamples)) {
    const double time = TimeCalls(device, run, calls);
    used += time;
    samples.values.push_back(time / static_cast<double>(calls));
  }
  return samples;
}

std::vector<MeasuredRow> MeasureDevice(Device& device, const DevicePlan& plan) {
  const at::Device where = device.torch_device();
  std::vector<MeasuredRow> rows;
  // First: the chip is cool.
  AddClock(device, plan, rows);
  for (const KernelCase& one : {DispatchCase(where), OpIssueCase(where)})
    rows.push_back(Measure(device, one, plan.budget_s));
  for (const KernelCase& one : KernelCases(where, plan.grid))
    rows.push_back(Measure(device, one, plan.budget_s));
  AddCopies(device, plan, rows);
  AddMemory(device, rows);
  return rows;
}

}  // namespace isthmus::backend
