#include <array>
#include <cstddef>

#include "traces/trace.h"

namespace isthmus::traces {
namespace {

constexpr std::array<const char*, kNumCategories> kCategoryTexts = {
    "compute", "tp_comm",     "cp_comm", "ep_comm",   "pipeline_comm", "boundary_comm",
    "dp_comm", "scalar_comm", "copy",    "optimizer", "host"};

}  // namespace

const char* ToText(Category category) {
  const auto index = static_cast<std::size_t>(category);
  return index < kCategoryTexts.size() ? kCategoryTexts[index] : "unknown";
}

const char* ToText(TraceKind kind) {
  return kind == TraceKind::kMeasured ? "measured" : "predicted";
}

}  // namespace isthmus::traces
