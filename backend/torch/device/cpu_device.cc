#include <torch/version.h>

#include <chrono>

#include "backend/torch/device/device.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

using Clock = std::chrono::steady_clock;

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(std::chrono::milliseconds timeout) : gloo_(timeout), began_(Clock::now()) {}

  at::Device torch_device() const override { return at::kCPU; }
  std::string description() const override { return "CPU, torch " TORCH_VERSION ", Gloo"; }

  Mark Record() override {
    times_ps_.push_back(now_ps());
    return static_cast<Mark>(times_ps_.size() - 1);
  }
  void Synchronize() override {}
  std::int64_t TimeOf(Mark mark) const override {
    ISTHMUS_CHECK(mark < times_ps_.size(), "mark {} of {}", mark, times_ps_.size());
    return times_ps_[mark];
  }
  void ForgetMarks() override { times_ps_.clear(); }
  std::int64_t now_ps() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began_).count() *
           1000;
  }

  at::Tensor CopyToHost(const at::Tensor& tensor) override { return tensor.clone(); }
  at::Tensor CopyToDevice(const at::Tensor& tensor) override { return tensor.clone(); }
  void WaitForCopies() override {}

  void EnterRange(const std::string& /*name*/) override {}
  void LeaveRange() override {}
  void RecordKernels() override {}
  std::vector<KernelRecord> TakeKernels() override { return {}; }

  DeviceMemory memory() const override { return {}; }
  void ResetPeaks() override {}

  BackendFactory& communicators() override { return gloo_; }

 private:
  GlooFactory gloo_;
  Clock::time_point began_;
  std::vector<std::int64_t> times_ps_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(std::chrono::milliseconds timeout) {
  return std::make_unique<CpuDevice>(timeout);
}

}  // namespace isthmus::backend
