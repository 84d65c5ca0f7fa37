#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "cli/commands.h"
#include "cli/internal/json_text.h"
#include "cli/output.h"
#include "plan/program/print.h"
#include "plan/program/program.h"
#include "plan/program/validate.h"
#include "scenarios/scenario.h"

namespace isthmus::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* KindName(plan::OpKind kind) {
  static constexpr const char* kNames[] = {"compute", "collective", "p2p", "copy", "optimizer"};
  return kNames[static_cast<std::size_t>(kind)];
}

Json OpJson(const plan::Program& program, base::Rank rank, const plan::Op& op) {
  const plan::Role& role = program.role(rank);
  Json json{
      {"op", plan::Describe(program, role, op)}, {"kind", KindName(op.kind)}, {"lane", op.lane}};
  if (op.microbatch >= 0) json["microbatch"] = op.microbatch;
  if (op.group != plan::kNone32) {
    Json members = Json::array();
    for (const base::Rank member : program.Members(rank, role.groups[op.group]))
      members.push_back(member.value());
    json["group"] = members;
  }
  const bool sized = op.kind == plan::OpKind::kCollective || op.kind == plan::OpKind::kCopy;
  if (sized) json["bytes"] = program.Size(rank, op.size).value();
  for (const plan::Transfer& transfer : role.transfers_of(op)) {
    json["transfers"].push_back({{"direction", transfer.sends ? "send" : "receive"},
                                 {"peer", program.Peer(rank, role.peers[transfer.peer]).value()},
                                 {"bytes", program.Size(rank, transfer.size).value()}});
  }
  return json;
}

Json RankJson(const plan::Program& program, base::Rank rank) {
  Json ops = Json::array();
  for (const plan::Op& op : program.role(rank).ops) ops.push_back(OpJson(program, rank, op));
  return {{"rank", rank.value()}, {"role", program.role(rank).name}, {"ops", ops}};
}

Json ProgramJson(const plan::Program& program) {
  Json roles = Json::array();
  std::vector<int> ranks(program.roles.size(), 0);
  for (const std::uint32_t role : program.role_of_rank) ++ranks[role];
  for (std::size_t role = 0; role < program.roles.size(); ++role) {
    roles.push_back({{"name", program.roles[role].name},
                     {"ranks", ranks[role]},
                     {"ops", program.roles[role].ops.size()},
                     {"values", program.roles[role].values.size()}});
  }
  Json boundaries = Json::array();
  for (std::size_t edge = 0; edge < program.edges.size(); ++edge) {
    const plan::Boundary& boundary = program.boundaries[edge];
    const auto name = [&](int module) {
      return program.modules[static_cast<std::size_t>(module)].module.name;
    };
    boundaries.push_back({{"from", name(program.edges[edge].from)},
                          {"to", name(program.edges[edge].to)},
                          {"case", plan::ToText(boundary.boundary_case)},
                          {"factor", boundary.factor},
                          {"tokens_forward", boundary.tokens_forward},
                          {"width", boundary.width}});
  }
  return {{"name", program.name},
          {"hash", base::HashText(plan::Hash(program))},
          {"placement", plan::ToText(program.placement)},
          {"num_ranks", program.num_ranks},
          {"num_microbatches", program.num_microbatches},
          {"passes", program.passes},
          {"roles", roles},
          {"boundaries", boundaries}};
}

/// The program, and below it what moves between its modules.
std::string PrintWhole(const plan::Program& program) {
  const std::string boundaries = plan::PrintBoundaries(program);
  return plan::PrintProgram(program) + (boundaries.empty() ? "" : "\n") + boundaries + "\n";
}

}  // namespace

int Plan(const PlanOptions& options) {
  CheckOutput({options.scenario}, options.output);
  const scenarios::Scenario scenario =
      scenarios::LoadScenario(options.scenario, options.overrides, scenarios::DefaultSearchPaths(),
                              scenarios::Purpose::kExecute);
  const plan::Program program = plan::Build(scenario.job);
  if (options.rank && (*options.rank < 0 || *options.rank >= program.num_ranks)) {
    throw base::Error(fmt::format("--rank {}: the program has ranks 0 to {}", *options.rank,
                                  program.num_ranks - 1));
  }
  const plan::Validation validation = plan::Validate(program);
  std::string text;
  if (options.output.json) {
    Json json = options.rank ? RankJson(program, base::Rank{*options.rank}) : ProgramJson(program);
    json["valid"] = validation.ok();
    json["problems"] = validation.problems;
    text = internal::JsonText(json);
  } else {
    text = options.rank         ? plan::PrintRank(program, base::Rank{*options.rank})
           : options.boundaries ? plan::PrintBoundaries(program)
                                : PrintWhole(program);
    for (const std::string& problem : validation.problems) text += "problem: " + problem + "\n";
    text += validation.ok()
                ? "valid: values, order, transfers, rendezvous and communicators checked\n"
                : "";
  }
  Write(options.output, text);
  return validation.ok() ? 0 : 1;
}

}  // namespace isthmus::cli
