#include <torch/version.h>

#include <chrono>

#include "backend/torch/device/device.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

std::int64_t SteadyNow() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// A time that another thread may learn; the first to know sets it.
class LateTime {
 public:
  void Set() {
    std::int64_t unset = kUnset;
    steady_ns_.compare_exchange_strong(unset, SteadyNow());
  }
  std::int64_t steady_ns() const {
    const std::int64_t time = steady_ns_.load();
    ISTHMUS_CHECK(time != kUnset, "a time of communication that nobody waited for");
    return time;
  }

 private:
  static constexpr std::int64_t kUnset = -1;
  std::atomic<std::int64_t> steady_ns_{kUnset};
};

class CpuDevice final : public Device {
 public:
  CpuDevice(std::chrono::milliseconds timeout, Reach reach)
      : gloo_(timeout, reach), zero_ns_(SteadyNow()) {}

  at::Device torch_device() const override { return at::kCPU; }
  std::string description() const override { return "CPU, torch " TORCH_VERSION ", Gloo"; }

  Mark Record() override {
    points_.push_back({.steady_ns = SteadyNow(), .late = nullptr});
    return static_cast<Mark>(points_.size() - 1);
  }

  // Gloo's collectives tell from their own thread when they are over; others when waited for.
  Mark RecordEnd(Pending& pending, std::uint16_t /*lane*/) override {
    if (pending.is_over()) return Record();
    const auto late = std::make_shared<LateTime>();
    pending.WhenFoundOver([late] { late->Set(); });
    if (pending.tells_end()) {
      pending.work()->getFuture()->addCallback(
          [late](c10::ivalue::Future& /*future*/) { late->Set(); });
    }
    points_.push_back({.steady_ns = 0, .late = late});
    return static_cast<Mark>(points_.size() - 1);
  }

  Mark RecordCopies() override { return Record(); }
  void WaitForCompute() override {}
  void Synchronize() override {}
  std::int64_t TimeOf(Mark mark) const override {
    ISTHMUS_CHECK(mark < points_.size(), "mark {} of {}", mark, points_.size());
    const Point& point = points_[mark];
    return (point.late ? point.late->steady_ns() : point.steady_ns) * 1000 - zero_ns_ * 1000;
  }
  void ForgetMarks() override { points_.clear(); }
  std::int64_t now_ps() const override { return (SteadyNow() - zero_ns_) * 1000; }
  void SetClock(std::int64_t steady_ns) override { zero_ns_ = steady_ns; }

  at::Tensor CopyToHost(const at::Tensor& tensor) override { return tensor.clone(); }
  void CopyFromHost(const at::Tensor& to, const at::Tensor& host) override { to.copy_(host); }
  void WaitForCopies() override {}

  bool shows_ranges() const override { return false; }
  void EnterRange(const std::string& /*name*/) override {}
  void LeaveRange() override {}
  void RecordKernels() override {}
  std::vector<KernelRecord> TakeKernels() override { return {}; }

  DeviceMemory memory() const override { return {}; }

  BackendFactory& communicators() override { return gloo_; }

 private:
  struct Point {
    std::int64_t steady_ns = 0;
    std::shared_ptr<LateTime> late;
  };

  GlooFactory gloo_;
  std::int64_t zero_ns_;
  std::vector<Point> points_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(std::chrono::milliseconds timeout, Reach reach) {
  return std::make_unique<CpuDevice>(timeout, reach);
}

}  // namespace isthmus::backend
