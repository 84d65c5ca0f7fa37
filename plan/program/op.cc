#include "plan/program/op.h"

#include "base/check.h"

namespace isthmus::plan {

const char* ToText(Action action) {
  switch (action) {
    case Action::kForward:
      return "forward";
    case Action::kBackward:
      return "backward";
    case Action::kBackwardInput:
      return "backward-input";
    case Action::kBackwardWeight:
      return "backward-weight";
    case Action::kRecompute:
      return "recompute";
  }
  return "";
}

const char* ToText(Purpose purpose) {
  switch (purpose) {
    case Purpose::kModel:
      return "model";
    case Purpose::kPipeline:
      return "pipeline";
    case Purpose::kBoundary:
      return "boundary";
    case Purpose::kGradientSync:
      return "gradient_sync";
    case Purpose::kParameterGather:
      return "parameter_gather";
    case Purpose::kScalars:
      return "scalars";
    case Purpose::kOffload:
      return "offload";
    case Purpose::kOptimizer:
      return "optimizer";
  }
  ISTHMUS_CHECK(false, "no such purpose: {}", static_cast<int>(purpose));
}

}  // namespace isthmus::plan
