#include "backend/cuda/staged_gloo.h"

#include <c10/cuda/CUDAStream.h>

#include <utility>
#include <vector>

namespace isthmus::backend {
namespace {

at::Tensor OnHost(const at::Tensor& tensor) {
  const at::Tensor host =
      at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
  return host;
}

// Gloo reads host memory at once, so what the GPU was to write must be there.
at::Tensor CopyToHost(const at::Tensor& tensor) {
  at::Tensor host = OnHost(tensor);
  host.copy_(tensor, /*non_blocking=*/true);
  c10::cuda::getCurrentCUDAStream().synchronize();
  return host;
}

/// Gloo's work on the host copies; waiting brings the results back.
class StagedWork final : public c10d::Work {
 public:
  StagedWork(c10::intrusive_ptr<c10d::Work> work,
             std::vector<std::pair<at::Tensor, at::Tensor>> results)
      : work_(std::move(work)), results_(std::move(results)) {}

  bool isCompleted() override { return work_->isCompleted(); }
  bool wait(std::chrono::milliseconds timeout) override {
    const bool done = work_->wait(timeout);
    for (auto& [device, host] : results_) device.copy_(host, /*non_blocking=*/true);
    // The pinned copies go back to their pool when the GPU has read them: the allocator sees to it.
    results_.clear();
    return done;
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::vector<std::pair<at::Tensor, at::Tensor>> results_;  // device, host
};

class StagedBackend final : public c10d::Backend {
 public:
  StagedBackend(c10::intrusive_ptr<c10d::Backend> gloo, int index, int size)
      : Backend(index, size), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override { return "staged_gloo"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    std::vector<at::Tensor> host{CopyToHost(tensors.front())};
    return Staged(gloo_->allreduce(host, options), {{tensors.front(), host.front()}});
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    std::vector<at::Tensor> host{CopyToHost(tensors.front())};
    return Staged(gloo_->broadcast(host, options), {{tensors.front(), host.front()}});
  }
  c10::intrusive_ptr<c10d::Work> reduce(std::vector<at::Tensor>& tensors,
                                        const c10d::ReduceOptions& options) override {
    std::vector<at::Tensor> host{CopyToHost(tensors.front())};
    return Staged(gloo_->reduce(host, options), {{tensors.front(), host.front()}});
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& whole, at::Tensor& part,
                                                 const c10d::AllgatherOptions& options) override {
    at::Tensor host_part = CopyToHost(part);
    at::Tensor host_whole = OnHost(whole);
    return Staged(gloo_->_allgather_base(host_whole, host_part, options), {{whole, host_whole}});
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(
      at::Tensor& part, at::Tensor& whole, const c10d::ReduceScatterOptions& options) override {
    at::Tensor host_whole = CopyToHost(whole);
    at::Tensor host_part = OnHost(part);
    return Staged(gloo_->_reduce_scatter_base(host_part, host_whole, options), {{part, host_part}});
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& received, at::Tensor& sent,
                                               std::vector<std::int64_t>& received_rows,
                                               std::vector<std::int64_t>& sent_rows,
                                               const c10d::AllToAllOptions& options) override {
    at::Tensor host_sent = CopyToHost(sent);
    at::Tensor host_received = OnHost(received);
    return Staged(gloo_->alltoall_base(host_received, host_sent, received_rows, sent_rows, options),
                  {{received, host_received}});
  }
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int peer,
                                      int tag) override {
    std::vector<at::Tensor> host{CopyToHost(tensors.front())};
    return Staged(gloo_->send(host, peer, tag), {});
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int peer,
                                      int tag) override {
    std::vector<at::Tensor> host{OnHost(tensors.front())};
    return Staged(gloo_->recv(host, peer, tag), {{tensors.front(), host.front()}});
  }

 private:
  static c10::intrusive_ptr<c10d::Work> Staged(
      c10::intrusive_ptr<c10d::Work> work, std::vector<std::pair<at::Tensor, at::Tensor>> results) {
    return c10::make_intrusive<StagedWork>(std::move(work), std::move(results));
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> StagedGlooFactory::Make(
    const c10::intrusive_ptr<c10d::Store>& store, int index, int size) {
  return c10::make_intrusive<StagedBackend>(gloo_->Make(store, index, size), index, size);
}

}  // namespace isthmus::backend
