#include "plan/program/print.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/program/internal/words.h"

namespace isthmus::plan {
namespace {

const char* OptimizerText(OptimizerAction action) {
  switch (action) {
    case OptimizerAction::kZero:
      return "zero gradients";
    case OptimizerAction::kNorm:
      return "gradient norm";
    case OptimizerAction::kCheck:
      return "overflow check";
    case OptimizerAction::kClip:
      return "scale gradients";
    case OptimizerAction::kStep:
      return "optimizer step";
  }
  return "";
}

}  // namespace

std::string Describe(const Program& program, const Role& role, const Op& op) {
  const std::string& module = program.modules[op.module].module.name;
  std::string microbatch = op.microbatch < 0 ? "" : fmt::format(" mb{}", op.microbatch);
  if (program.modules[op.module].num_chunks() > 1 && (op.microbatch >= 0 || op.chunk > 0))
    microbatch += fmt::format(" chunk {}", op.chunk);
  switch (op.kind) {
    case OpKind::kCompute:
      return fmt::format("{} {}{} block {}", ToText(op.action()), module, microbatch, op.block);
    case OpKind::kCollective: {
      const bool world = role.groups[op.group].kind == GroupRef::Kind::kWorld;
      return fmt::format("{} {} {}{}", ToText(op.collective()), ToText(op.purpose),
                         world ? "all ranks" : module, microbatch);
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

namespace {

using internal::RankList;
using internal::ShortCount;
using Rows = std::vector<std::vector<std::string>>;

/// "2 of 12 layers" for even stages, "1, 3, 3, 1 layers" for others.
std::string LayersText(const PlacedModule& module) {
  const std::vector<int>& first = module.first_layer;
  std::string list;
  bool even = true;
  for (std::size_t stage = 0; stage + 1 < first.size(); ++stage) {
    const int layers = first[stage + 1] - first[stage];
    even = even && layers == first[1] - first[0];
    list += fmt::format("{}{}", stage == 0 ? "" : ", ", layers);
  }
  if (first.size() == 2) return fmt::format("{} layers", first[1]);
  const char* stages = module.num_chunks() > 1 ? "virtual stages" : "stages";
  if (even) return fmt::format("{} {} of {} layers", first.size() - 1, stages, first[1] - first[0]);
  return fmt::format("{} of {} layers", stages, list);
}

std::string ParametersText(const PlacedModule& module) {
  std::string text;
  for (std::size_t stage = 0; stage < module.rank_parameters.size(); ++stage) {
    const std::int64_t count = module.rank_parameters[stage];
    if (stage > 1 && stage + 1 < module.rank_parameters.size()) continue;
    if (stage > 0 && count == module.rank_parameters[stage - 1]) continue;
    text += (text.empty() ? "" : stage > 1 ? " ... " : ", ") + ShortCount(count);
  }
  return text;
}

std::string SettingsText(const Module& module) {
  const ModuleSettings& settings = module.settings;
  std::string text = settings.frozen ? "frozen" : "trained";
  if (module.projector) text += module.projector->frozen ? ", frozen projector" : ", projector";
  if (module.projector && module.projector->place == Projector::Place::kWithLlm)
    text += " with llm";
  if (settings.recompute == Recompute::kSelective) text += ", recompute selective";
  if (settings.recompute == Recompute::kFull) text += ", recompute full";
  if (settings.recompute_layers > 0) text += fmt::format(" {} layers", settings.recompute_layers);
  if (settings.optimizer_instances > 1) {
    text += fmt::format(", {} optimizer instances", settings.optimizer_instances);
  }
  if (settings.offload_parameters) text += ", offloaded";
  if (settings.backward == BackwardMode::kAbsent) text += ", no backward";
  if (settings.host_issue == HostIssue::kGraph) text += ", one graph";
  return text;
}

std::string LayoutText(const PlacedModule& module) {
  const Grid& grid = module.grid;
  Layout layout{.tp = grid.size(Axis::kTp),
                .cp = grid.size(Axis::kCp),
                .pp = grid.size(Axis::kPp),
                .vpp = module.num_chunks(),
                .dp = grid.size(kDp)};
  return ToText(layout);
}

Rows ModuleRows(const Program& program) {
  static constexpr std::array<const char*, 3> kKinds = {"vit", "audio", "decoder"};
  Rows rows{{"module", "kind", "layout", "ranks", "layers", "parameters/rank", "settings"}};
  for (const PlacedModule& module : program.modules) {
    std::vector<base::Rank> ranks = module.grid.Ranks();
    std::sort(ranks.begin(), ranks.end());
    rows.push_back({module.module.name, kKinds[static_cast<std::size_t>(module.module.kind)],
                    LayoutText(module), RankList(ranks), LayersText(module), ParametersText(module),
                    SettingsText(module.module)});
  }
  return rows;
}

constexpr std::size_t kMostRoles = 24;

Rows RoleRows(const Program& program) {
  std::vector<std::vector<base::Rank>> ranks(program.roles.size());
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    ranks[program.role_of_rank[rank]].emplace_back(rank);
  }
  Rows rows{{"role", "ranks", "number", "forward", "backward", "recompute", "collective",
             "exchange", "copy", "optimizer", "ops"}};
  for (std::size_t index = 0; index < program.roles.size() && index < kMostRoles; ++index) {
    const Role& role = program.roles[index];
    std::array<std::size_t, 7> counts{};
    for (const Op& op : role.ops) {
      const bool compute = op.kind == OpKind::kCompute;
      const bool forward = compute && op.action() == Action::kForward;
      const bool recompute = compute && op.action() == Action::kRecompute;
      ++counts[!compute    ? 2 + static_cast<std::size_t>(op.kind)
               : forward   ? 0U
               : recompute ? 2U
                           : 1U];
    }
    std::vector<std::string>& row = rows.emplace_back();
    row = {role.name, RankList(ranks[index], 3), fmt::format("{}", ranks[index].size())};
    for (const std::size_t count : counts)
      row.push_back(count == 0 ? "-" : base::FormatCount(static_cast<std::int64_t>(count)));
    row.push_back(base::FormatCount(static_cast<std::int64_t>(role.ops.size())));
  }
  if (program.roles.size() > kMostRoles) {
    rows.push_back({fmt::format("... {} more roles", program.roles.size() - kMostRoles)});
  }
  return rows;
}

}  // namespace

std::string PrintProgram(const Program& program) {
  const Workload& workload = program.workload;
  std::string text = fmt::format(
      "program {}: {}, {} ranks\n{} step{} of {} samples of {} tokens in {} microbatches of {}\n\n",
      program.name, ToText(program.placement), base::FormatCount(program.num_ranks),
      program.num_steps, program.num_steps == 1 ? "" : "s",
      base::FormatCount(workload.global_batch), base::FormatCount(workload.sequence_length),
      program.num_microbatches, workload.microbatch_size);
  text += internal::Columns(ModuleRows(program), "  ") + "\n";
  text += internal::Columns(RoleRows(program), "  ", {2, 3, 4, 5, 6, 7, 8, 9, 10}) + "\npasses: ";
  for (std::size_t pass = 0; pass < program.passes.size(); ++pass) {
    text += (pass == 0 ? "" : ", ") + program.passes[pass];
  }
  return text + (program.passes.empty() ? "none\n" : "\n");
}

}  // namespace isthmus::plan
