#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/torch/device/device.h"

/// A device on the host that does what a GPU's does, by figures that a test gives it.
namespace isthmus::tests {

/// Marks are `tick_ps` apart; every step has `kernels`, times counted from its first mark.
/// Notes copies and ranges.
class FakeDevice final : public backend::Device {
 public:
  std::int64_t tick_ps = 1'000'000;
  std::vector<backend::KernelRecord> kernels;
  std::vector<std::string> notes;
  backend::DeviceMemory counted;

  at::Device torch_device() const override { return at::kCPU; }
  std::string description() const override { return "a fake"; }
  backend::Mark Record() override {
    times_.push_back(static_cast<std::int64_t>(times_.size()) * tick_ps);
    return static_cast<backend::Mark>(times_.size() - 1);
  }
  backend::Mark RecordEnd(backend::Pending& /*pending*/, std::uint16_t /*lane*/) override {
    return Record();
  }
  backend::Mark RecordCopies() override {
    notes.emplace_back("mark copies");
    return Record();
  }
  void WaitForCompute() override {}
  void Synchronize() override {}
  std::int64_t TimeOf(backend::Mark mark) const override { return times_[mark]; }
  void ForgetMarks() override { times_.clear(); }
  std::int64_t now_ps() const override { return 0; }
  void SetClock(std::int64_t /*steady_ns*/) override {}

  at::Tensor CopyToHost(const at::Tensor& tensor) override {
    notes.emplace_back("to host");
    return tensor.clone();
  }
  void CopyFromHost(const at::Tensor& to, const at::Tensor& host) override {
    notes.emplace_back("from host");
    to.zero_();
    late_.emplace_back(to, host.clone());
  }
  /// Copies from the host arrive here, so that whoever reads without waiting reads zeros.
  void WaitForCopies() override {
    notes.emplace_back("wait for copies");
    for (auto& [to, host] : std::exchange(late_, {})) to.copy_(host);
  }

  bool shows_ranges() const override { return true; }
  void EnterRange(const std::string& name) override { notes.push_back("enter " + name); }
  void LeaveRange() override { notes.emplace_back("leave"); }
  void RecordKernels() override { records_ = true; }
  std::vector<backend::KernelRecord> TakeKernels() override {
    return records_ ? kernels : std::vector<backend::KernelRecord>{};
  }
  backend::DeviceMemory memory() const override { return counted; }
  backend::BackendFactory& communicators() override { return gloo_; }

 private:
  std::vector<std::int64_t> times_;
  std::vector<std::pair<at::Tensor, at::Tensor>> late_;
  bool records_ = false;
  backend::GlooFactory gloo_{std::chrono::seconds(20)};
};

}  // namespace isthmus::tests
