#include "backend/cuda/kernel_recorder.h"

#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "backend/cuda/cuda_check.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
constexpr std::size_t kAlignment = 8;  // CUPTI's own

/// What CUPTI's threads hand in until it is taken.
struct Inbox {
  std::mutex mutex;
  bool in_use = false;
  std::vector<KernelRecord> kernels;
};

Inbox& TheInbox() {
  static Inbox inbox;
  return inbox;
}

void CUPTIAPI GiveBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void CUPTIAPI TakeBuffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                         std::size_t /*size*/, std::size_t valid_size) {
  Inbox& inbox = TheInbox();
  const std::lock_guard lock(inbox.mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_size, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    inbox.kernels.push_back({.name = kernel->name == nullptr ? "" : kernel->name,
                             .stream = kernel->streamId,
                             .start_ps = static_cast<std::int64_t>(kernel->start) * 1000,
                             .end_ps = static_cast<std::int64_t>(kernel->end) * 1000});
  }
  std::free(buffer);
}

}  // namespace

KernelRecorder::KernelRecorder(std::function<std::int64_t()> now_ps) : now_ps_(std::move(now_ps)) {
  Inbox& inbox = TheInbox();
  {
    const std::lock_guard lock(inbox.mutex);
    ISTHMUS_CHECK(!inbox.in_use, "kernels are recorded already");
    inbox.in_use = true;
    inbox.kernels.clear();
  }
  CheckCupti(cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer),
             "cuptiActivityRegisterCallbacks");
  CheckCupti(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
}

KernelRecorder::~KernelRecorder() {
  cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Inbox& inbox = TheInbox();
  const std::lock_guard lock(inbox.mutex);
  inbox.in_use = false;
}

// From CUPTI's clock to the host's: the two drift apart, so it is asked each time.
std::int64_t KernelRecorder::OffsetNow() const {
  std::uint64_t cupti_ns = 0;
  const std::int64_t before = now_ps_();
  CheckCupti(cuptiGetTimestamp(&cupti_ns), "cuptiGetTimestamp");
  const std::int64_t between = before + (now_ps_() - before) / 2;
  return between - static_cast<std::int64_t>(cupti_ns) * 1000;
}

std::vector<KernelRecord> KernelRecorder::Take() {
  CheckCupti(cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
  std::vector<KernelRecord> kernels;
  {
    Inbox& inbox = TheInbox();
    const std::lock_guard lock(inbox.mutex);
    kernels.swap(inbox.kernels);
  }
  const std::int64_t offset_ps = OffsetNow();
  for (KernelRecord& kernel : kernels) {
    kernel.start_ps += offset_ps;
    kernel.end_ps += offset_ps;
  }
  std::sort(kernels.begin(), kernels.end(), [](const KernelRecord& a, const KernelRecord& b) {
    return std::pair(a.start_ps, a.stream) < std::pair(b.start_ps, b.stream);
  });
  return kernels;
}

}  // namespace isthmus::backend
