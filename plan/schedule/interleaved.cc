#include "plan/schedule/interleaved.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "plan/schedule/one_f_one_b.h"

namespace isthmus::plan {
namespace {

/// As many groups as have p microbatches each, or one.
int NumGroups(const InterleavedStage& at, int num_microbatches) {
  return std::max(1, num_microbatches / at.num_stages);
}

/// The first groups are the larger ones.
int LargestGroup(const InterleavedStage& at, int num_microbatches) {
  const int groups = NumGroups(at, num_microbatches);
  return (num_microbatches + groups - 1) / groups;
}

/// Forwards in order: group by group, and within a group chunk by chunk.
std::vector<Turn> ForwardTurns(const InterleavedStage& at, int num_microbatches) {
  const int groups = NumGroups(at, num_microbatches);
  std::vector<Turn> turns;
  int first = 0;
  for (int group = 0; group < groups; ++group) {
    const int end = first + num_microbatches / groups + (group < num_microbatches % groups ? 1 : 0);
    for (int chunk = 0; chunk < at.num_chunks; ++chunk) {
      for (int microbatch = first; microbatch < end; ++microbatch) {
        turns.push_back({.microbatch = microbatch, .chunk = chunk});
      }
    }
    first = end;
  }
  return turns;
}

/// The turns of one direction with nothing behind their end.
class Turns {
 public:
  explicit Turns(std::vector<Turn> turns) : turns_(std::move(turns)) {}
  Turn operator[](int index) const {
    const auto at = static_cast<std::size_t>(index);
    return at < turns_.size() ? turns_[at] : Turn{};
  }

 private:
  std::vector<Turn> turns_;
};

}  // namespace

int InterleavedWarmup(const InterleavedStage& at, int num_microbatches) {
  const int behind = at.num_stages - at.stage - 1;
  if (at.num_chunks == 1) return std::min(behind, num_microbatches);
  return std::min(2 * behind + (at.num_chunks - 1) * LargestGroup(at, num_microbatches),
                  num_microbatches * at.num_chunks);
}

int MostInFirstChunk(const InterleavedStage& at, int num_microbatches) {
  if (at.num_chunks == 1) return std::min(at.num_stages, num_microbatches);
  return std::min(2 * LargestGroup(at, num_microbatches), num_microbatches);
}

bool CanInterleave(int num_stages, int num_chunks, int num_microbatches) {
  if (num_chunks == 1) return true;
  // Below four microbatches there is one group.
  return num_stages > 2 || (num_stages == 2 && (num_microbatches < 4 || num_microbatches % 2 == 0));
}

std::vector<PipelineCall> InterleavedOneForwardOneBackward(const InterleavedStage& at,
                                                           int num_microbatches) {
  ISTHMUS_CHECK(CanInterleave(at.num_stages, at.num_chunks, num_microbatches),
                "{} stages of {} chunks with {} microbatches", at.num_stages, at.num_chunks,
                num_microbatches);
  const int warmup = InterleavedWarmup(at, num_microbatches);
  if (at.num_chunks == 1) return OneForwardOneBackward(warmup, num_microbatches);
  std::vector<Turn> order = ForwardTurns(at, num_microbatches);
  const int count = static_cast<int>(order.size());
  const Turns forwards(order);
  for (Turn& turn : order) turn.chunk = at.num_chunks - 1 - turn.chunk;
  const Turns backwards(std::move(order));

  std::vector<PipelineCall> calls;
  const auto forward = [&](int index) {
    calls.push_back({.kind = PipelineCall::Kind::kForward, .turn = forwards[index]});
    calls.push_back({.receive_forward = forwards[index + 1], .send_forward = forwards[index]});
  };
  const auto backward = [&](int index) {
    calls.push_back({.kind = PipelineCall::Kind::kBackward, .turn = backwards[index]});
    calls.push_back({.receive_backward = backwards[index + 1], .send_backward = backwards[index]});
  };
  calls.push_back({.receive_forward = forwards[0]});
  for (int index = 0; index < warmup; ++index) forward(index);
  calls.push_back({.receive_backward = backwards[0]});
  for (int index = warmup; index < count; ++index) {
    forward(index);
    backward(index - warmup);
  }
  for (int index = count - warmup; index < count; ++index) backward(index);
  return calls;
}

}  // namespace isthmus::plan
