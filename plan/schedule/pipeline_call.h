#pragma once

#include <cstdint>

namespace isthmus::plan {

/// A microbatch in one of the chunks (virtual stages) that a rank holds.
struct Turn {
  int microbatch = -1;  // -1: none
  int chunk = 0;        // 0 … vpp-1, in the order of their layers

  bool exists() const { return microbatch >= 0; }
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// One call of a pipeline schedule, in the order the host makes them.
///
/// An exchange names the turns whose tensors move: at most one per direction, launched together.
/// `receive_forward` is what the turn's forward here needs, `send_forward` what it has made, and
/// likewise backward. Directions that a virtual stage doesn't have are the caller's to drop.
struct PipelineCall {
  enum class Kind : std::uint8_t { kExchange, kForward, kBackward };
  Kind kind = Kind::kExchange;
  Turn turn = {};  // kForward, kBackward
  Turn receive_forward = {};
  Turn send_forward = {};
  Turn receive_backward = {};
  Turn send_backward = {};
};

}  // namespace isthmus::plan
