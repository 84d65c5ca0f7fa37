#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/torch/comm/communicators.h"

namespace isthmus::backend {

/// A point in what a rank has launched: behind everything on the current stream at that moment.
using Mark = std::uint32_t;

/// A kernel that ran on the device, as its profiler saw it. Which op it belongs to follows from its
/// time: ops of a stream don't overlap, and backwards are launched from threads of autograd's own.
struct KernelRecord {
  std::string name;
  std::uint32_t stream = 0;
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
};

/// What the device's allocator holds, in bytes; a CPU counts nothing and says 0.
struct DeviceMemory {
  std::int64_t allocated_bytes = 0;
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  std::int64_t capacity_bytes = 0;
};

/// Where a rank computes: its clock, its copies to the host, and which communicators it has.
///
/// Times count from SetClock() (before it, from construction) at the pace of the host's steady
/// clock; on a GPU they are known after Synchronize(). Belongs to one rank's thread.
class Device {
 public:
  virtual ~Device() = default;

  virtual at::Device torch_device() const = 0;
  /// "NVIDIA H200, driver 580.95, NCCL 2.28.9": what a trace's header says.
  virtual std::string description() const = 0;

  virtual Mark Record() = 0;
  /// A point where `pending`, which was just posted on `lane`, is over. As exact as the device
  /// knows: at the latest when it was waited for.
  virtual Mark RecordEnd(Pending& pending, std::uint16_t lane) = 0;
  /// A point behind all copies that were launched so far.
  virtual Mark RecordCopies() = 0;
  /// Waits until what was launched on the current stream, and what that waits for, has run: to be
  /// called where the host reads a result, since such a read would wait for a missing rank for
  /// ever. Throws base::IoError when it takes longer than the time-out. On a CPU it has run
  /// already.
  virtual void WaitForCompute() = 0;
  /// Waits likewise until everything launched so far has run.
  virtual void Synchronize() = 0;
  /// When the device reached the mark. On a GPU: needs a Synchronize() behind the mark.
  virtual std::int64_t TimeOf(Mark mark) const = 0;
  /// Forgets all marks, between steps.
  virtual void ForgetMarks() = 0;
  /// The host's own clock on the same scale.
  virtual std::int64_t now_ps() const = 0;
  /// Time 0 is when the host's steady clock showed `steady_ns`.
  virtual void SetClock(std::int64_t steady_ns) = 0;

  /// Copies beside compute, behind what was launched so far and one after the other; the tensors
  /// may be let go of at once. The result is there for what the current stream runs behind
  /// WaitForCopies(). A copy on the host lies in pinned memory.
  virtual at::Tensor CopyToHost(const at::Tensor& tensor) = 0;
  virtual void CopyFromHost(const at::Tensor& to, const at::Tensor& host) = 0;
  virtual void WaitForCopies() = 0;

  /// Whether ranges can be seen: where not, nobody needs to name them.
  virtual bool shows_ranges() const = 0;
  /// What is launched between these two shows under `name` in the vendor's profiler.
  virtual void EnterRange(const std::string& name) = 0;
  virtual void LeaveRange() = 0;
  /// From now on kernels are recorded, where the device has a profiler.
  virtual void RecordKernels() = 0;
  /// Kernels since the last call, by start. Needs Synchronize().
  virtual std::vector<KernelRecord> TakeKernels() = 0;

  virtual DeviceMemory memory() const = 0;

  /// What makes this device's communicators.
  virtual BackendFactory& communicators() = 0;
};

/// Ranks on the CPU: everything runs in the caller's thread, over Gloo.
std::unique_ptr<Device> MakeCpuDevice(std::chrono::milliseconds timeout,
                                      Reach reach = Reach::kOneHost);

/// Which of a machine's ranks asks for a GPU. The ranks of a machine are dealt in turns to the GPUs
/// that they see.
struct GpuRequest {
  int local_rank = 0;
  std::chrono::milliseconds timeout{60'000};  // of every wait for other ranks
  Reach reach = Reach::kOneHost;
  /// Asked once, with the number that the driver gives the rank's GPU: whether each rank of the job
  /// has a GPU of its own, with the same answer on all. They then talk over NCCL, else over Gloo
  /// staged through the host, since NCCL refuses two ranks on one GPU.
  std::function<bool(const std::string& gpu)> each_has_its_own = [](const std::string& /*gpu*/) {
    return true;
  };
};

/// A rank on a GPU of this machine, from the shared library isthmus_cuda, which is loaded at the
/// first call. Throws base::IoError when the library or what it needs isn't there, or there is no
/// GPU: the message says which.
std::unique_ptr<Device> MakeGpuDevice(const GpuRequest& request);

}  // namespace isthmus::backend
