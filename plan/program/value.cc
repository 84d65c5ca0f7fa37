#include "plan/program/value.h"

#include "base/check.h"

namespace isthmus::plan {

const char* ToText(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameters:
      return "parameters";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizerState:
      return "optimizer_state";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kBoundary:
      return "boundary";
    case MemoryCategory::kLogits:
      return "logits";
    case MemoryCategory::kPlaceholders:
      return "placeholders";
    case MemoryCategory::kTransient:
      return "transient";
    case MemoryCategory::kCommunication:
      return "communication";
    case MemoryCategory::kWorkspace:
      return "workspace";
    case MemoryCategory::kContext:
      return "context";
  }
  ISTHMUS_CHECK(false, "no such memory category: {}", static_cast<int>(category));
}

}  // namespace isthmus::plan
