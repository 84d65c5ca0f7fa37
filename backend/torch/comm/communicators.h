#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "backend/torch/comm/communicator.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// Makes the c10d backend of a group: Gloo here, NCCL in the GPU library.
///
/// `store` is the group's own name space; members call with equal names.
class BackendFactory {
 public:
  virtual ~BackendFactory() = default;
  virtual c10::intrusive_ptr<c10d::Backend> Make(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int index, int size) = 0;
};

/// Where the ranks of a job are.
enum class Reach : std::uint8_t { kOneHost, kManyHosts };

/// Gloo over TCP, one worker thread a group. Waits of longer than `timeout` end in base::IoError.
///
/// Listens on the interfaces that GLOO_SOCKET_IFNAME lists; without it on the loopback where all
/// ranks are on one host, else on the address of the host's own name. Make() throws base::IoError
/// where there is none.
class GlooFactory final : public BackendFactory {
 public:
  explicit GlooFactory(std::chrono::milliseconds timeout, Reach reach = Reach::kOneHost)
      : timeout_(timeout), reach_(reach) {}
  c10::intrusive_ptr<c10d::Backend> Make(const c10::intrusive_ptr<c10d::Store>& store, int index,
                                         int size) override;

 private:
  std::chrono::milliseconds timeout_;
  Reach reach_;
};

/// All communicators that a rank's program names.
///
/// All ranks construct it at the same time: groups are created in one order over the whole program,
/// each by its members only. Collectives, inner collectives of Compute, and messages have backends
/// of their own, since they are issued on lanes of their own. Lifetime: `program` and `factory`
/// must outlive the construction. Belongs to one rank's thread.
class Communicators {
 public:
  /// `control` makes the communicator of that name, which carries tensors of the host.
  Communicators(const plan::Program& program, base::Rank rank,
                const c10::intrusive_ptr<c10d::Store>& store, BackendFactory& factory,
                BackendFactory& control);
  /// The same for ranks on CPUs.
  Communicators(const plan::Program& program, base::Rank rank,
                const c10::intrusive_ptr<c10d::Store>& store, BackendFactory& factory)
      : Communicators(program, rank, store, factory, factory) {}

  /// For collectives on `group` of the rank's role.
  Communicator& Of(std::uint32_t group) { return *collectives_[group]; }
  /// For what a Compute op of `module` does inside, over one axis (kTp or kCp) of its grid; of one
  /// member where the axis has size 1.
  Communicator& Inside(std::uint16_t module, plan::AxisSet axis);
  /// All ranks, for messages: members in rank order.
  Communicator& messages() { return *messages_; }
  /// All ranks, for what is not part of the program: losses, checkpoints, traces. Tensors are on
  /// the host, whatever the device of the run. Not recorded.
  Communicator& control() { return *control_; }

  /// Communicator::Abort() on all of them.
  void Abort();

  void RecordCalls(std::vector<CommCall>* log);
  void EnterOp(std::uint32_t op);

 private:
  std::vector<std::unique_ptr<Communicator>> owned_;
  std::vector<Communicator*> collectives_;                                  // by Role::groups
  std::map<std::pair<std::uint16_t, std::uint8_t>, Communicator*> inside_;  // by module, axis bits
  Communicator* messages_ = nullptr;
  Communicator* control_ = nullptr;
};

}  // namespace isthmus::backend
