#include "tests/support/torch/mutating_backend.h"

#include <chrono>
#include <vector>

namespace isthmus::tests {
namespace {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

class MutatingBackend final : public c10d::Backend {
 public:
  MutatingBackend(c10::intrusive_ptr<c10d::Backend> inner, const Mutation& mutation)
      : c10d::Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        mutation_(mutation) {}

  // NOLINTNEXTLINE(readability-const-return-type): as c10d declares it.
  const std::string getBackendName() const override { return "mutating"; }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return inner_->allreduce(tensors, options);
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return inner_->broadcast(tensors, options);
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return inner_->reduce(tensors, options);
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    return inner_->_reduce_scatter_base(output, input, options);
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    at::Tensor sent = Sent(input);
    return Received(inner_->_allgather_base(output, sent, options), output);
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<std::int64_t>& output_rows,
                            std::vector<std::int64_t>& input_rows,
                            const c10d::AllToAllOptions& options) override {
    at::Tensor sent = Sent(input);
    return Received(inner_->alltoall_base(output, sent, output_rows, input_rows, options), output);
  }
  WorkPointer send(Tensors& tensors, int peer, int tag) override {
    Tensors sent{Sent(tensors.front())};
    return inner_->send(sent, peer, tag);
  }
  WorkPointer recv(Tensors& tensors, int peer, int tag) override {
    return inner_->recv(tensors, peer, tag);
  }

 private:
  at::Tensor Sent(const at::Tensor& tensor) const {
    if (!mutation_.sent) return tensor;
    at::Tensor copy = tensor.clone();
    mutation_.sent(copy);
    return copy;
  }
  WorkPointer Received(WorkPointer work, const at::Tensor& tensor) const {
    if (!mutation_.received) return work;
    work->wait();
    mutation_.received(tensor);
    return work;
  }

  c10::intrusive_ptr<c10d::Backend> inner_;
  const Mutation& mutation_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> MutatingFactory::Make(
    const c10::intrusive_ptr<c10d::Store>& store, int index, int size) {
  backend::GlooFactory gloo(std::chrono::seconds(120));
  return c10::make_intrusive<MutatingBackend>(gloo.Make(store, index, size), mutation_);
}

}  // namespace isthmus::tests
