#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "plan/model/kernel.h"

namespace isthmus::backend {

/// What a rank asked of c10d, recorded at the call: what twin tests hold against the program.
struct CommCall {
  enum class Kind : std::uint8_t { kCollective, kSend, kReceive };
  Kind kind = Kind::kCollective;
  plan::CollectiveKind collective = plan::CollectiveKind::kAllReduce;  // kCollective
  std::string group;                                                   // name of the communicator
  std::int64_t bytes = 0;  // by the convention of plan::InnerCollective::bytes; messages: payload
  int peer = -1;           // kSend, kReceive: rank in the world
  std::uint32_t op = 0;    // the op of the role that was running
  friend bool operator==(const CommCall&, const CommCall&) = default;
};

/// Communication that was posted. Holds the tensors until it is over.
///
/// Wait() returns when the result may be read (on a GPU: by what is launched next on the current
/// stream) and throws base::IoError that names communicator, kind and bytes when a member is gone
/// or the time-out is over. Default: nothing to wait for. Waiting twice is fine.
class Pending {
 public:
  Pending() = default;
  /// `tells_end`: the work's future may be asked for; c10d throws where it has none.
  Pending(c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> tensors, std::string what,
          bool tells_end)
      : work_(std::move(work)),
        tensors_(std::move(tensors)),
        what_(std::move(what)),
        tells_end_(tells_end) {}
  void Wait();
  bool is_over() const { return !work_; }
  /// What c10d says about it; null when it is over.
  const c10::intrusive_ptr<c10d::Work>& work() const { return work_; }
  /// Whether c10d's work tells by a future when it is over.
  bool tells_end() const { return tells_end_; }
  /// It was posted as a part of `whole`, whose end is its end.
  void EndWith(const Pending& whole) { work_ = whole.work_; }
  /// Calls `hook` once, when Wait() finds it over; not if it is over already.
  void WhenFoundOver(std::function<void()> hook) { hook_ = std::move(hook); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::vector<at::Tensor> tensors_;
  std::string what_;
  bool tells_end_ = false;
  std::function<void()> hook_;
};

/// A tensor to send, or to receive into. `peer` is an index among a communicator's members.
struct Message {
  at::Tensor tensor;
  int peer = 0;
  bool sends = false;
};

/// The ranks of one communicator and the c10d backend between them; of one rank alone there is no
/// backend and every call is over at once.
///
/// Tensors are contiguous, on the device of the run, of equal sizes on all members where not said
/// otherwise. Calls post and return; members make them in the same order. What can't be posted is
/// base::IoError, as what doesn't end. Belongs to one rank's thread. Sizes are recorded in the log,
/// if there is one.
class Communicator {
 public:
  enum class Reduction : std::uint8_t { kSum, kMax };

  Communicator(std::string name, std::vector<base::Rank> members, base::Rank self,
               c10::intrusive_ptr<c10d::Backend> backend);

  const std::string& name() const { return name_; }
  const std::vector<base::Rank>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }
  int index() const { return index_; }  // of this rank among the members

  /// In place.
  Pending AllReduce(const at::Tensor& tensor, Reduction reduction = Reduction::kSum);
  /// Parts one after the other, in member order, along dimension 0 of `whole`.
  Pending AllGather(const at::Tensor& whole, const at::Tensor& part);
  Pending ReduceScatter(const at::Tensor& part, const at::Tensor& whole);
  /// Equal parts along dimension 0.
  Pending AllToAll(const at::Tensor& received, const at::Tensor& sent);
  /// Rows along dimension 0 per member; sizes may differ and may be 0. `program_bytes` is recorded:
  /// what the plan calls the size of the collective.
  Pending AllToAllV(const at::Tensor& received, const std::vector<std::int64_t>& received_rows,
                    const at::Tensor& sent, const std::vector<std::int64_t>& sent_rows,
                    std::int64_t program_bytes);
  Pending Broadcast(const at::Tensor& tensor, int root);
  /// The sum arrives at the root; elsewhere the tensor's content is undefined afterwards.
  Pending Reduce(const at::Tensor& tensor, int root);
  /// Posts messages together, receives in front of sends, as one launch where the backend has such:
  /// over NCCL, messages that are posted one by one wait for each other. They match in order per
  /// pair and direction. One Pending a message, in their order.
  std::vector<Pending> Exchange(const std::vector<Message>& messages);

  /// NCCL: ends what is under way, so that nobody waits for partners that don't come; nothing can
  /// be posted afterwards. Gloo knows no such thing: its waits end by their time-out.
  void Abort();

  /// Where calls are recorded from now on, and under which op; null: nowhere.
  void RecordCalls(std::vector<CommCall>* log) { log_ = log; }
  void EnterOp(std::uint32_t op) { op_ = op; }

 private:
  void Record(const CommCall& call);
  void Record(plan::CollectiveKind kind, std::int64_t bytes);
  using Call = std::function<c10::intrusive_ptr<c10d::Work>()>;
  Pending Post(const char* what, std::vector<at::Tensor> tensors, const Call& call,
               bool tells_end = true) const;
  Pending Post(const Message& message);

  std::string name_;
  std::vector<base::Rank> members_;
  int index_ = 0;
  c10::intrusive_ptr<c10d::Backend> backend_;
  std::vector<CommCall>* log_ = nullptr;
  std::uint32_t op_ = 0;
};

}  // namespace isthmus::backend
