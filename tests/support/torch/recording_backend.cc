#include "tests/support/torch/recording_backend.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace isthmus::tests {
namespace {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

std::int64_t BytesOf(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

class RecordingBackend final : public c10d::Backend {
 public:
  RecordingBackend(c10::intrusive_ptr<c10d::Backend> inner, std::vector<base::Rank> members,
                   int number, C10dLog& log)
      : c10d::Backend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        members_(std::move(members)),
        number_(number),
        log_(log) {}

  // NOLINTNEXTLINE(readability-const-return-type): as c10d declares it.
  const std::string getBackendName() const override { return "recording"; }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    Record("all_reduce", BytesOf(tensors.front()));
    return inner_->allreduce(tensors, options);
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    Record("broadcast", BytesOf(tensors.front()));
    return inner_->broadcast(tensors, options);
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    Record("reduce", BytesOf(tensors.front()));
    return inner_->reduce(tensors, options);
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    Record("reduce_scatter", BytesOf(input));
    return inner_->_reduce_scatter_base(output, input, options);
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    Record("all_gather", BytesOf(output));
    return inner_->_allgather_base(output, input, options);
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<std::int64_t>& output_rows,
                            std::vector<std::int64_t>& input_rows,
                            const c10d::AllToAllOptions& options) override {
    if (input_rows.empty()) {
      Record("all_to_all", BytesOf(input));
    } else {
      Record("all_to_all_v", std::max(ToOthers(input, input_rows), ToOthers(output, output_rows)));
    }
    return inner_->alltoall_base(output, input, output_rows, input_rows, options);
  }
  WorkPointer send(Tensors& tensors, int peer, int tag) override {
    Record("send", BytesOf(tensors.front()), members_[static_cast<std::size_t>(peer)].value());
    return inner_->send(tensors, peer, tag);
  }
  WorkPointer recv(Tensors& tensors, int peer, int tag) override {
    Record("receive", BytesOf(tensors.front()), members_[static_cast<std::size_t>(peer)].value());
    return inner_->recv(tensors, peer, tag);
  }

 private:
  void Record(const char* kind, std::int64_t bytes, int peer = -1) {
    log_.calls.push_back({.op = log_.op,
                          .kind = kind,
                          .members = members_,
                          .number = number_,
                          .bytes = bytes,
                          .peer = peer});
  }
  std::int64_t ToOthers(const at::Tensor& tensor, const std::vector<std::int64_t>& rows) const {
    std::int64_t others = 0;
    for (std::size_t member = 0; member < rows.size(); ++member) {
      if (static_cast<int>(member) != getRank()) others += rows[member];
    }
    return others * tensor.size(1) * static_cast<std::int64_t>(tensor.element_size());
  }

  c10::intrusive_ptr<c10d::Backend> inner_;
  std::vector<base::Rank> members_;
  int number_;
  C10dLog& log_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> RecordingFactory::Make(
    const c10::intrusive_ptr<c10d::Store>& store, int index, int size) {
  const auto key = [](int member) { return fmt::format("rank of member {}", member); };
  const std::string self = std::to_string(rank_.value());
  store->set(key(index), std::vector<std::uint8_t>(self.begin(), self.end()));
  std::vector<base::Rank> members;
  for (int member = 0; member < size; ++member) {
    const std::vector<std::uint8_t> text = store->get(key(member));
    members.emplace_back(std::stoi(std::string(text.begin(), text.end())));
  }
  const int number = made_[members]++;
  return c10::make_intrusive<RecordingBackend>(gloo_.Make(store, index, size), std::move(members),
                                               number, log_);
}

}  // namespace isthmus::tests
