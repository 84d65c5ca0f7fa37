#include "reports/internal/edge_of_op.h"

namespace isthmus::reports {

std::uint16_t EdgeOfOp(const traces::OpRecord& op, const traces::RoleRecord& role,
                       const traces::Header& header) {
  if (op.category != traces::Category::kBoundaryComm) return 0;
  const std::string module =
      op.module < header.modules.size() ? header.modules[op.module].name : std::string();
  const std::string group =
      op.group > 0 && op.group <= role.groups.size() ? role.groups[op.group - 1] : std::string();
  std::uint16_t by_source = 0;
  std::uint16_t by_sink = 0;
  std::uint16_t number = 0;
  for (const traces::BoundaryRecord& edge : header.boundaries) {
    ++number;
    const std::string name = edge.from + "->" + edge.to;
    if (group.find(name) != std::string::npos || op.name.find(name) != std::string::npos) {
      return number;
    }
    if (by_source == 0 && edge.from == module) by_source = number;
    if (by_sink == 0 && edge.to == module) by_sink = number;
  }
  return by_source != 0 ? by_source : by_sink;
}

std::uint16_t EdgeBetweenNames(const std::string& module, const std::string& other,
                               const traces::Header& header) {
  std::uint16_t number = 0;
  for (const traces::BoundaryRecord& edge : header.boundaries) {
    ++number;
    const bool along = edge.from == module && edge.to == other;
    const bool against = edge.from == other && edge.to == module;
    if (along || against) return number;
  }
  return 0;
}

}  // namespace isthmus::reports
