#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/torch/comm/communicators.h"
#include "base/ids.h"

/// Gloo that writes down what c10d was asked for.
namespace isthmus::tests {

/// One call of a c10d backend, with the tensors that it got.
struct C10dCall {
  std::uint32_t op = 0;  // that the rank was in
  std::string kind;      // plan::ToText of a collective, "send", "receive"
  std::vector<base::Rank> members;
  int number =
      0;  // of the communicator among those with these members, in the order they were made
  /// Of the whole buffer; all_to_all_v: of what the rank sends to others or gets from them, the
  /// larger one; messages: the payload.
  std::int64_t bytes = 0;
  int peer = -1;  // messages: rank in the world
};

/// What one rank's backends write down; `op` is set by whoever runs the ops.
struct C10dLog {
  std::uint32_t op = 0;
  std::vector<C10dCall> calls;
};

/// Makes the backends of one rank. Members tell each other their ranks through the group's store,
/// so what is written down owes nothing to names in the program. Lifetime: the log outlives the
/// backends. Belongs to one rank's thread.
class RecordingFactory final : public backend::BackendFactory {
 public:
  RecordingFactory(base::Rank rank, C10dLog& log, std::chrono::milliseconds timeout)
      : rank_(rank), log_(log), gloo_(timeout) {}
  c10::intrusive_ptr<c10d::Backend> Make(const c10::intrusive_ptr<c10d::Store>& store, int index,
                                         int size) override;

 private:
  base::Rank rank_;
  C10dLog& log_;
  backend::GlooFactory gloo_;
  std::map<std::vector<base::Rank>, int> made_;
};

}  // namespace isthmus::tests
