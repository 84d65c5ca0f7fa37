#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/torch/modules/parameter.h"

namespace isthmus::backend {

/// What is kept of each element of a part.
enum class StateKind : std::uint8_t { kWeight, kFirstMoment, kSecondMoment, kGradient };
/// "weight", "first_moment", …: the spelling of files.
const char* ToText(StateKind kind);

/// Elements [begin, end) of a parameter's local tensor, with what a rank has of them: flat tensors
/// of end - begin elements. Lifetime: the parameter outlives it.
struct StoredPart {
  struct State {
    StateKind kind = StateKind::kWeight;
    at::Tensor values;
  };
  const Parameter* parameter = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<State> states;
};

}  // namespace isthmus::backend
