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

class CudaDevice final : public Device {
 public:
  CudaDevice(const GpuRequest& request, int num_gpus, std::chrono::milliseconds timeout,
             std::unique_ptr<BackendFactory> gloo)
      : index_(static_cast<c10::DeviceIndex>(request.local_rank % num_gpus)),
        is_nccl_(request.local_world_size <= num_gpus) {
    CheckCuda(cudaSetDevice(index_), "cudaSetDevice");
    c10::cuda::set_device(index_);
    copies_ = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_);
    if (is_nccl_) {
      factory_ = std::make_unique<NcclFactory>(index_, timeout);
    } else {
      factory_ = std::make_unique<StagedGlooFactory>(std::move(gloo));
    }
    zero_ns_ = SteadyNow();
    RestartClock();
  }

  at::Device torch_device() const override { return {at::kCUDA, index_}; }

  std::string description() const override {
    cudaDeviceProp properties{};
    CheckCuda(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    int driver = 0;
    int nccl = 0;
    CheckCuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    ncclGetVersion(&nccl);
    return fmt::format("{}, CUDA driver {}.{}, torch {}, NCCL {}", properties.name, driver / 1000,
                       driver % 1000 / 10, TORCH_VERSION, nccl);
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
        watchers_.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_));
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

  void Synchronize() override { CheckCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

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

  at::Tensor CopyToDevice(const at::Tensor& tensor) override {
    at::Tensor here = at::empty(tensor.sizes(), tensor.options().device(torch_device()));
    CopyBeside(here, tensor);
    return here;
  }

  void WaitForCopies() override {
    at::cuda::CUDAEvent copied;
    copied.record(*copies_);
    copied.block(c10::cuda::getCurrentCUDAStream(index_));
  }

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
  void ResetPeaks() override { c10::cuda::CUDACachingAllocator::resetPeakStats(index_); }

  BackendFactory& communicators() override { return *factory_; }

 private:
  // Behind what is launched, ahead of what will be; both tensors are kept until the copy is over.
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
    base_event_->record(c10::cuda::getCurrentCUDAStream(index_));
    Synchronize();
    base_ps_ = now_ps();
  }

  c10::DeviceIndex index_;
  bool is_nccl_;
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
    const isthmus::backend::GpuRequest& request, std::chrono::milliseconds timeout,
    std::unique_ptr<isthmus::backend::BackendFactory> gloo) {
  return new isthmus::backend::CudaDevice(request, isthmus::backend::CountGpus(), timeout,
                                          std::move(gloo));
}
