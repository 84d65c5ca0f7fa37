#pragma once

#include <cstdint>
#include <vector>

/// 1F1B: pure functions of a stage's warm-up depth and the number of microbatches.
namespace isthmus::plan {

/// One call of a pipeline schedule, in the order the host makes them.
///
/// An exchange names the microbatches whose tensors move: at most one per direction, launched
/// together; -1 where nothing moves. Directions that a stage doesn't have are the caller's to drop.
struct PipelineCall {
  enum class Kind : std::uint8_t { kExchange, kForward, kBackward };
  Kind kind = Kind::kExchange;
  int microbatch = -1;  // kForward, kBackward
  int receive_forward = -1;
  int send_forward = -1;
  int receive_backward = -1;
  int send_backward = -1;
};

/// Warm-up forwards, then one forward and one backward in turn, then the backwards that are left
/// (Megatron-LM's order of exchanges: paired in the steady phase). `warmup_depth` is the number of
/// stages behind this one; the number of warm-up forwards is min(warmup_depth, num_microbatches).
/// At most warmup_depth + 1 microbatches are in flight. Bubble at equal times: (p−1)/(m+p−1).
std::vector<PipelineCall> OneForwardOneBackward(int warmup_depth, int num_microbatches);

}  // namespace isthmus::plan
