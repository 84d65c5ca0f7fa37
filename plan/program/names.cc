#include "plan/program/names.h"

#include <fmt/format.h>

namespace isthmus::plan {

const char* ToText(OpKind kind) {
  switch (kind) {
    case OpKind::kCompute:
      return "compute";
    case OpKind::kCollective:
      return "collective";
    case OpKind::kP2P:
      return "p2p";
    case OpKind::kCopy:
      return "copy";
    case OpKind::kOptimizer:
      return "optimizer";
  }
  return "";
}

const char* ToText(LaneKind kind) {
  switch (kind) {
    case LaneKind::kCompute:
      return "compute";
    case LaneKind::kCommunicator:
      return "communicator";
    case LaneKind::kP2P:
      return "p2p";
    case LaneKind::kCopyToHost:
      return "copy_to_host";
    case LaneKind::kCopyToDevice:
      return "copy_to_device";
  }
  return "";
}

std::string ActionName(const Op& op) {
  static constexpr const char* kActions[] = {"forward", "backward", "backward_input",
                                             "backward_weight", "recompute"};
  static constexpr const char* kOptimizer[] = {"zero", "norm", "check", "clip", "step"};
  switch (op.kind) {
    case OpKind::kCompute:
      return kActions[op.detail];
    case OpKind::kCollective:
      return ToText(op.collective());
    case OpKind::kP2P:
      return "exchange";
    case OpKind::kCopy:
      return op.copy() == CopyDirection::kToHost ? "to_host" : "to_device";
    case OpKind::kOptimizer:
      return kOptimizer[op.detail];
  }
  return "";
}

std::string SharedGroupName(const Program& program, const GroupRef& group) {
  const auto module_name = [&](std::size_t module) { return program.modules[module].module.name; };
  switch (group.kind) {
    case GroupRef::Kind::kAxes:
      return fmt::format("{} {}", module_name(group.module), ToText(group.axes));
    case GroupRef::Kind::kBoundary: {
      const Edge& edge = program.edges[group.edge];
      return fmt::format("{}->{}", module_name(static_cast<std::size_t>(edge.from)),
                         module_name(static_cast<std::size_t>(edge.to)));
    }
    case GroupRef::Kind::kEmbedding:
      return fmt::format("{} embedding", module_name(group.module));
    case GroupRef::Kind::kWorld:
      return "world";
  }
  return "";
}

std::string GroupName(const Program& program, const GroupRef& group) {
  std::string name = SharedGroupName(program, group);
  if (group.kind != GroupRef::Kind::kBoundary) return name;
  return fmt::format("{} {}", name, group.index);
}

}  // namespace isthmus::plan
