#include "plan/program/print.h"

#include <fmt/format.h>

namespace isthmus::plan {
namespace {

const char* ActionText(Action action) {
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

const char* OptimizerText(OptimizerAction action) {
  switch (action) {
    case OptimizerAction::kZero:
      return "zero gradients";
    case OptimizerAction::kNorm:
      return "gradient norm";
    case OptimizerAction::kCheck:
      return "overflow check";
    case OptimizerAction::kClip:
      return "clip gradients";
    case OptimizerAction::kStep:
      return "optimizer step";
  }
  return "";
}

}  // namespace

std::string Describe(const Program& program, const Role& role, const Op& op) {
  const std::string& module = program.modules[op.module].module.name;
  const std::string microbatch = op.microbatch < 0 ? "" : fmt::format(" mb{}", op.microbatch);
  switch (op.kind) {
    case OpKind::kCompute:
      return fmt::format("{} {}{} block {}", ActionText(op.action()), module, microbatch, op.block);
    case OpKind::kCollective: {
      const char* purpose = ToText(op.purpose);
      return fmt::format("{} {} {}{}", ToText(op.collective()), purpose, module, microbatch);
    }
    case OpKind::kP2P: {
      int sends = 0;
      for (const Transfer& transfer : role.transfers_of(op)) sends += transfer.sends ? 1 : 0;
      return fmt::format("{} exchange{}: {} out, {} in", ToText(op.purpose), microbatch, sends,
                         op.num_transfers - sends);
    }
    case OpKind::kCopy:
      return fmt::format("copy {} parameters {}", module,
                         op.copy() == CopyDirection::kToHost ? "to host" : "to device");
    case OpKind::kOptimizer:
      return fmt::format("{} {}", OptimizerText(op.optimizer()), module);
  }
  return "";
}

std::string PrintProgram(const Program& program) {
  std::string text =
      fmt::format("program {} ({}, {} ranks, {} microbatches)\n", program.name,
                  ToText(program.placement), program.num_ranks, program.num_microbatches);
  std::vector<int> ranks(program.roles.size(), 0);
  for (const std::uint32_t role : program.role_of_rank) ++ranks[role];
  for (std::size_t role = 0; role < program.roles.size(); ++role) {
    text += fmt::format("  role {}: {} ranks, {} ops\n", program.roles[role].name, ranks[role],
                        program.roles[role].ops.size());
  }
  return text;
}

std::string PrintRank(const Program& program, base::Rank rank) {
  const Role& role = program.role(rank);
  std::string text = fmt::format("rank {}: {}\n", rank.value(), role.name);
  for (std::size_t index = 0; index < role.ops.size(); ++index) {
    text += fmt::format("  {:5} lane {:2}  {}\n", index, role.ops[index].lane,
                        Describe(program, role, role.ops[index]));
  }
  return text;
}

std::string PrintBoundaries(const Program& program) {
  std::string text;
  for (std::size_t edge = 0; edge < program.edges.size(); ++edge) {
    const Boundary& boundary = program.boundaries[edge];
    text += fmt::format("edge {}: {} {}, width {}\n", edge, ToText(boundary.boundary_case),
                        boundary.factor, boundary.width);
  }
  return text;
}

}  // namespace isthmus::plan
