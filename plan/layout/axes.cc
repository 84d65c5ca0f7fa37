#include "plan/layout/axes.h"

#include <array>
#include <utility>

namespace isthmus::plan {

std::string ToText(AxisSet axes) {
  static constexpr std::array<std::pair<Axis, const char*>, 4> kWhole = {
      {{Axis::kTp, "tp"}, {Axis::kCp, "cp"}, {Axis::kEp, "ep"}, {Axis::kPp, "pp"}}};
  std::string text;
  const auto append = [&text](const char* name) {
    if (!text.empty()) {
      text += '+';
    }
    text += name;
  };
  for (const auto& [axis, name] : kWhole) {
    if (axis == Axis::kPp) {  // dp comes before pp
      const bool shard = axes.has(Axis::kDpShard);
      const bool replica = axes.has(Axis::kDpReplica);
      if (shard || replica) {
        append(shard && replica ? "dp" : (shard ? "dp_shard" : "dp_replica"));
      }
    }
    if (axes.has(axis)) {
      append(name);
    }
  }
  return text;
}

}  // namespace isthmus::plan
