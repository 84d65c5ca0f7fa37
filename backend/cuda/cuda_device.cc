#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <torch/version.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/kernel_recorder.h"
#include "backend/cuda/nccl_factory.h"
#include "backend/cuda/staged_gloo.h"
#include "backend/torch/device/gpu_library.h"
#include "base/check.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

std::int64_t SteadyNow() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// GPUs of this machine. Throws where there are none, or CUDA can't use them.
int CountGpus() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver || count == 0) {
    throw base::IoError(fmt::format("error: no device: this machine has no usable NVIDIA GPU ({})",
                                    cudaGetErrorString(code)));
  }
  CheckCuda(code, "cudaGetDeviceCount");
  return count;
}

cudaDeviceProp PropertiesOf(int index) {
  cudaDeviceProp properties{};
  CheckCuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return properties;
}

std::string UuidOf(int index) {
  const cudaDeviceProp properties = PropertiesOf(index);
  std::string text;
  for (const char byte : properties.uuid.bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(const GpuRequest& request, int num_gpus, std::unique_ptr<BackendFactory> gloo)
      : index_(static_cast<c10::DeviceIndex>(request.local_rank % num_gpus)),
        timeout_(request.timeout) {
    CheckCuda(cudaSetDevice(index_), "cudaSetDevice");
    c10::cuda::set_device(index_);
    copies_ = OwnStream();
    is_nccl_ = request.each_has_its_own(UuidOf(index_));
    if (is_nccl_) {
      factory_ = std::make_unique<NcclFactory>(index_, timeout_);
    } else {
      factory_ = std::make_unique<StagedGlooFactory>(std::move(gloo));
    }
    zero_ns_ = SteadyNow();
    RestartClock();
  }

  at::Device torch_device() const override { return {at::kCUDA, index_}; }

  std::string description() const override {
    int driver = 0;
    int nccl = 0;
    CheckCuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    ncclGetVersion(&nccl);  // 2.28.9 is 22809
    const std::string messages =
        is_nccl_ ? fmt::format("NCCL {}.{}.{}", nccl / 10000, nccl % 10000 / 100, nccl % 100)
                 : std::string("Gloo through the host");
    return fmt::format("{}, CUDA driver {}.{}, torch {}, {}", PropertiesOf(index_).name,
                       driver / 1000, driver % 1000 / 10, TORCH_VERSION, messages);
  }

  Mark Record() override {
    events_.emplace_back(cudaEventDefault);  // with timing
    events_.back().record(c10::cuda::getCurrentCUDAStream(index_));
    return static_cast<Mark>(events_.size() - 1);
  }

  // NCCL runs on streams of its own, so a stream of ours that waits for it knows its end; staged
  // Gloo is over when the host has waited.
  Mark RecordEnd(Pending& pending, std::uint16_t lane) override {
    events_.emplace_back(cudaEventDefault);
    const auto mark = static_cast<Mark>(events_.size() - 1);
    if (is_nccl_ && !pending.is_over()) {
      while (watchers_.size() <= lane) {
        watchers_.push_back(OwnStream());
      }
      const c10::cuda::CUDAStreamGuard guard(watchers_[lane]);
      pending.work()->wait();
      events_[mark].record(watchers_[lane]);
    } else if (pending.is_over()) {
      events_[mark].record(c10::cuda::getCurrentCUDAStream(index_));
    } else {
      pending.WhenFoundOver(
          [this, mark] { events_[mark].record(c10::cuda::getCurrentCUDAStream(index_)); });
    }
    return mark;
  }

  Mark RecordCopies() override {
    events_.emplace_back(cudaEventDefault);
    events_.back().record(*copies_);
    return static_cast<Mark>(events_.size() - 1);
  }

  // The driver's own waits have no time-out.
  void WaitForCompute() override {
    constexpr auto kPoll = std::chrono::microseconds(20);
    at::cuda::CUDAEvent reached;
    reached.record(c10::cuda::getCurrentCUDAStream(index_));
    const auto give_up = std::chrono::steady_clock::now() + timeout_;
    while (!reached.query()) {
      if (std::chrono::steady_clock::now() > give_up) {
        throw base::IoError(fmt::format(
            "error: GPU {} did not come to the end of what was launched within {} s: it waits for "
            "a rank that doesn't come, or needs longer",
            index_, std::chrono::duration<double>(timeout_).count()));
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  void Synchronize() override {
    WaitForCompute();
    CheckCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  std::int64_t TimeOf(Mark mark) const override {
    ISTHMUS_CHECK(mark < events_.size(), "mark {} of {}", mark, events_.size());
    // Milliseconds in a float: a mark is at most a step away from the base.
    const double ms = base_event_->elapsed_time(events_[mark]);
    return base_ps_ + static_cast<std::int64_t>(ms * 1e9);
  }

  void ForgetMarks() override {
    events_.clear();
    RestartClock();
  }

  std::int64_t now_ps() const override { return (SteadyNow() - zero_ns_) * 1000; }
  void SetClock(std::int64_t steady_ns) override {
    zero_ns_ = steady_ns;
    RestartClock();
  }

  at::Tensor CopyToHost(const at::Tensor& tensor) override {
    at::Tensor host =
        at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
    CopyBeside(host, tensor);
    return host;
  }

  void CopyFromHost(const at::Tensor& to, const at::Tensor& host) override { CopyBeside(to, host); }

  void WaitForCopies() override {
    at::cuda::CUDAEvent copied;
    copied.record(*copies_);
    copied.block(c10::cuda::getCurrentCUDAStream(index_));
  }

  bool shows_ranges() const override { return true; }
  void EnterRange(const std::string& name) override { nvtxRangePushA(name.c_str()); }
  void LeaveRange() override { nvtxRangePop(); }
  void RecordKernels() override {
    if (!kernels_) kernels_.emplace([this] { return now_ps(); });
  }
  std::vector<KernelRecord> TakeKernels() override {
    return kernels_ ? kernels_->Take() : std::vector<KernelRecord>{};
  }

  DeviceMemory memory() const override {
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index_);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    CheckCuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    return {.allocated_bytes = stats.allocated_bytes[kAll].current,
            .peak_allocated_bytes = stats.allocated_bytes[kAll].peak,
            .peak_reserved_bytes = stats.reserved_bytes[kAll].peak,
            .capacity_bytes = static_cast<std::int64_t>(total_bytes)};
  }

  BackendFactory& communicators() override { return *factory_; }

 private:
  // c10's pools deal their streams round and round. NCCL takes its own from the other pool: on one
  // of those, what waits here would hold up what somebody waits for.
  c10::cuda::CUDAStream OwnStream() const {
    return c10::cuda::getStreamFromPool(/*isHighPriority=*/true, index_);
  }

  // Behind what is launched. Memory of both tensors is used again only when the copy is over: the
  // GPU's allocator is told here, that of pinned memory by the copy itself.
  void CopyBeside(const at::Tensor& to, const at::Tensor& from) {
    at::cuda::CUDAEvent ready;
    ready.record(c10::cuda::getCurrentCUDAStream(index_));
    ready.block(*copies_);
    const c10::cuda::CUDAStreamGuard guard(*copies_);
    to.copy_(from, /*non_blocking=*/true);
    for (const at::Tensor& tensor : {to, from}) {
      if (!tensor.is_cuda()) continue;
      c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), *copies_);
    }
  }

  void RestartClock() {
    Synchronize();
    base_event_.emplace(cudaEventDefault);
    // An idle GPU takes an event at once, and this wait doesn't sleep: some microseconds.
    const std::int64_t before_ps = now_ps();
    base_event_->record(c10::cuda::getCurrentCUDAStream(index_));
    base_event_->synchronize();
    base_ps_ = before_ps + (now_ps() - before_ps) / 2;
  }

  c10::DeviceIndex index_;
  std::chrono::milliseconds timeout_;
  bool is_nccl_ = false;
  std::optional<c10::cuda::CUDAStream> copies_;
  std::unique_ptr<BackendFactory> factory_;
  std::vector<c10::cuda::CUDAStream> watchers_;  // by lane
  std::int64_t zero_ns_ = 0;
  std::optional<at::cuda::CUDAEvent> base_event_;
  std::int64_t base_ps_ = 0;
  std::vector<at::cuda::CUDAEvent> events_;
  std::optional<KernelRecorder> kernels_;
};

}  // namespace
}  // namespace isthmus::backend

extern "C" __attribute__((visibility("default"))) isthmus::backend::Device* isthmus_make_gpu_device(
    const isthmus::backend::GpuRequest& request,
    std::unique_ptr<isthmus::backend::BackendFactory> gloo) {
  return new isthmus::backend::CudaDevice(request, isthmus::backend::CountGpus(), std::move(gloo));
}
