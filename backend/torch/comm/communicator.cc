#include "backend/torch/comm/communicator.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/torch/comm/words.h"
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
    throw base::IoError(fmt::format("error: {} did not end: {}", what_, WordsOf(error)));
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

Pending Communicator::Post(const char* what, std::vector<at::Tensor> tensors, const Call& call,
                           bool tells_end) const {
  for (const at::Tensor& tensor : tensors) {
    ISTHMUS_CHECK(tensor.is_contiguous(), "{} on {} of a tensor with gaps", what, name_);
  }
  std::string text = fmt::format("{} of {} bytes on {}", what, BytesOf(tensors.front()), name_);
  try {
    return {call(), std::move(tensors), std::move(text), tells_end};
  } catch (const std::exception& error) {
    throw base::IoError(fmt::format("error: {} was not posted: {}", text, WordsOf(error)));
  }
}

Pending Communicator::AllReduce(const at::Tensor& tensor, Reduction reduction) {
  if (size() == 1) return {};
  Record(plan::CollectiveKind::kAllReduce, BytesOf(tensor));
  c10d::AllreduceOptions options;
  options.reduceOp = ToC10d(reduction);
  std::vector<at::Tensor> tensors{tensor};
  return Post("all-reduce", {tensor}, [&] { return backend_->allreduce(tensors, options); });
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
  return Post("all-gather", {whole, part},
              [&] { return backend_->_allgather_base(output, input); });
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
  // Gloo makes it of other calls, and that work has no future.
  const auto post = [&] { return backend_->_reduce_scatter_base(output, input); };
  return Post("reduce-scatter", {whole, part}, post, /*tells_end=*/false);
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
  return Post("all-to-all", {sent, received},
              [&] { return backend_->alltoall_base(output, input, even, also_even); });
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
  return Post("all-to-all-v", {sent, received},
              [&] { return backend_->alltoall_base(output, input, output_rows, input_rows); });
}

Pending Communicator::Broadcast(const at::Tensor& tensor, int root) {
  if (size() == 1) return {};
  Record(plan::CollectiveKind::kBroadcast, BytesOf(tensor));
  c10d::BroadcastOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors{tensor};
  return Post("broadcast", {tensor}, [&] { return backend_->broadcast(tensors, options); });
}

Pending Communicator::Reduce(const at::Tensor& tensor, int root) {
  if (size() == 1) return {};
  Record(plan::CollectiveKind::kReduce, BytesOf(tensor));
  c10d::ReduceOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors{tensor};
  return Post("reduce", {tensor}, [&] { return backend_->reduce(tensors, options); });
}

Pending Communicator::Post(const Message& message) {
  Record({.kind = message.sends ? CommCall::Kind::kSend : CommCall::Kind::kReceive,
          .bytes = BytesOf(message.tensor),
          .peer = members_[static_cast<std::size_t>(message.peer)].value()});
  std::vector<at::Tensor> tensors{message.tensor};
  const auto post = [&] {
    return message.sends ? backend_->send(tensors, message.peer, 0)
                         : backend_->recv(tensors, message.peer, 0);
  };
  return Post(message.sends ? "send" : "receive", {message.tensor}, post, /*tells_end=*/false);
}

std::vector<Pending> Communicator::Exchange(const std::vector<Message>& messages) {
  std::vector<Pending> posted(messages.size());
  if (messages.empty()) return posted;
  const bool as_one = backend_->supportsCoalescing();
  if (as_one) backend_->startCoalescing();
  for (const bool sends : {false, true}) {
    for (std::size_t at = 0; at < messages.size(); ++at) {
      if (messages[at].sends == sends) posted[at] = Post(messages[at]);
    }
  }
  if (!as_one) return posted;
  const Pending all = Post(
      "an exchange of messages", {messages.front().tensor},
      [&] { return backend_->endCoalescing(); }, /*tells_end=*/false);
  for (Pending& pending : posted) pending.EndWith(all);
  return posted;
}

void Communicator::Abort() {
  if (backend_) backend_->abort();
}

}  // namespace isthmus::backend
