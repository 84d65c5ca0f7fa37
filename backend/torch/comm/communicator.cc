#include "backend/torch/comm/communicator.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

c10d::ReduceOp ToC10d(Communicator::Reduction reduction) {
  return reduction == Communicator::Reduction::kMax ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
}

std::int64_t BytesOf(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

void CopyInto(const at::Tensor& to, const at::Tensor& from) {
  if (!to.is_same(from) && to.data_ptr() != from.data_ptr()) to.copy_(from);
}

}  // namespace

void Pending::Wait() {
  if (!work_) return;
  try {
    work_->wait();
  } catch (const std::exception& error) {
    work_.reset();
    throw base::IoError(fmt::format("error: {} did not end: {}", what_, error.what()));
  }
  work_.reset();
  tensors_.clear();
  if (hook_) std::exchange(hook_, nullptr)();
}

Communicator::Communicator(std::string name, std::vector<base::Rank> members, base::Rank self,
                           c10::intrusive_ptr<c10d::Backend> backend)
    : name_(std::move(name)), members_(std::move(members)), backend_(std::move(backend)) {
  const auto found = std::find(members_.begin(), members_.end(), self);
  ISTHMUS_CHECK(found != members_.end(), "rank {} isn't a member of {}", self.value(), name_);
  ISTHMUS_CHECK(members_.size() == 1 || backend_, "{} has no backend", name_);
  index_ = static_cast<int>(found - members_.begin());
}

void Communicator::Record(const CommCall& call) {
  if (log_ == nullptr) return;
  log_->push_back(call);
  log_->back().group = name_;
  log_->back().op = op_;
}

void Communicator::Record(plan::CollectiveKind kind, std::int64_t bytes) {
  Record({.kind = CommCall::Kind::kCollective, .collective = kind, .bytes = bytes});
}

Pending Communicator::Post(c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> tensors,
                           const char* what, bool is_message) const {
  const auto bytes = tensors.empty() ? 0 : BytesOf(tensors.front());
  std::string text = fmt::format("{} of {} bytes on {}", what, bytes, name_);
  return {std::move(work), std::move(tensors), std::move(text), is_message};
}

Pending Communicator::AllReduce(const at::Tensor& tensor, Reduction reduction) {
  if (size() == 1) return {};
  Record(plan::CollectiveKind::kAllReduce, BytesOf(tensor));
  c10d::AllreduceOptions options;
  options.reduceOp = ToC10d(reduction);
  std::vector<at::Tensor> tensors{tensor};
  return Post(backend_->allreduce(tensors, options), {tensor}, "all-reduce");
}

Pending Communicator::AllGather(const at::Tensor& whole, const at::Tensor& part) {
  ISTHMUS_CHECK(whole.numel() == part.numel() * size(), "all-gather of {} into {} on {}",
                part.numel(), whole.numel(), name_);
  if (size() == 1) {
    CopyInto(whole, part);
    return {};
  }
  Record(plan::CollectiveKind::kAllGather, BytesOf(whole));
  at::Tensor output = whole;
  at::Tensor input = part;
  return Post(backend_->_allgather_base(output, input), {whole, part}, "all-gather");
}

Pending Communicator::ReduceScatter(const at::Tensor& part, const at::Tensor& whole) {
  ISTHMUS_CHECK(whole.numel() == part.numel() * size(), "reduce-scatter of {} into {} on {}",
                whole.numel(), part.numel(), name_);
  if (size() == 1) {
    CopyInto(part, whole);
    return {};
  }
  Record(plan::CollectiveKind::kReduceScatter, BytesOf(whole));
  at::Tensor output = part;
  at::Tensor input = whole;
  return Post(backend_->_reduce_scatter_base(output, input), {whole, part}, "reduce-scatter");
}

Pending Communicator::AllToAll(const at::Tensor& received, const at::Tensor& sent) {
  if (size() == 1) {
    CopyInto(received, sent);
    return {};
  }
  Record(plan::CollectiveKind::kAllToAll, BytesOf(sent));
  at::Tensor output = received;
  at::Tensor input = sent;
  std::vector<std::int64_t> even;
  std::vector<std::int64_t> also_even;
  return Post(backend_->alltoall_base(output, input, even, also_even), {sent, received},
              "all-to-all");
}

Pending Communicator::AllToAllV(const at::Tensor& received,
                                const std::vector<std::int64_t>& received_rows,
                                const at::Tensor& sent, const std::vector<std::int64_t>& sent_rows,
                                std::int64_t program_bytes) {
  if (size() == 1) {
    CopyInto(received, sent);
    return {};
  }
  Record(plan::CollectiveKind::kAllToAllV, program_bytes);
  at::Tensor output = received;
  at::Tensor input = sent;
  std::vector<std::int64_t> output_rows = received_rows;
  std::vector<std::int64_t> input_rows = sent_rows;
  return Post(backend_->alltoall_base(output, input, output_rows, input_rows), {sent, received},
              "all-to-all-v");
}

Pending Communicator::Broadcast(const at::Tensor& tensor, int root) {
  if (size() == 1) return {};
  Record(plan::CollectiveKind::kBroadcast, BytesOf(tensor));
  c10d::BroadcastOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors{tensor};
  return Post(backend_->broadcast(tensors, options), {tensor}, "broadcast");
}

Pending Communicator::Reduce(const at::Tensor& tensor, int root) {
  if (size() == 1) return {};
  Record(plan::CollectiveKind::kReduce, BytesOf(tensor));
  c10d::ReduceOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors{tensor};
  return Post(backend_->reduce(tensors, options), {tensor}, "reduce");
}

Pending Communicator::Send(const at::Tensor& tensor, int peer, int tag) {
  Record({.kind = CommCall::Kind::kSend,
          .bytes = BytesOf(tensor),
          .peer = members_[static_cast<std::size_t>(peer)].value()});
  std::vector<at::Tensor> tensors{tensor};
  return Post(backend_->send(tensors, peer, tag), {tensor}, "send", true);
}

Pending Communicator::Receive(const at::Tensor& tensor, int peer, int tag) {
  Record({.kind = CommCall::Kind::kReceive,
          .bytes = BytesOf(tensor),
          .peer = members_[static_cast<std::size_t>(peer)].value()});
  std::vector<at::Tensor> tensors{tensor};
  return Post(backend_->recv(tensors, peer, tag), {tensor}, "receive", true);
}

}  // namespace isthmus::backend
