#include "plan/program/validate.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "plan/program/internal/rendezvous_run.h"
#include "plan/program/print.h"

namespace isthmus::plan {
namespace {

/// The proofs that concern one role alone.
class RoleCheck {
 public:
  RoleCheck(const Program& program, const Role& role, std::vector<std::string>& problems)
      : program_(program), role_(role), problems_(problems) {}

  void Run() {
    CheckReferences();
    CheckVersions();
    CheckForwardBeforeBackward();
  }

 private:
  void Problem(std::uint32_t op, const std::string& text) {
    problems_.push_back(fmt::format("role {}: op {} ({}): {}", role_.name, op,
                                    Describe(program_, role_, role_.ops[op]), text));
  }

  void CheckReferences() {
    for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
      const Op& op = role_.ops[index];
      if (op.lane >= role_.lanes.size())
        Problem(index, fmt::format("lane {} doesn't exist", op.lane));
      if (op.group != kNone32 && op.group >= role_.groups.size()) {
        Problem(index, fmt::format("group {} doesn't exist", op.group));
      }
      if (op.kind == OpKind::kCollective && op.group == kNone32)
        Problem(index, "a collective without a group");
    }
  }

  /// Each version is produced once, before it is consumed, and from the version before it.
  void CheckVersions() {
    std::vector<bool> is_there(role_.values.size(), false);
    std::map<std::pair<StorageId, std::uint32_t>, ValueId> versions;
    for (ValueId value = 0; value < role_.values.size(); ++value) {
      const Value& what = role_.values[value];
      const bool is_new = versions.try_emplace({what.storage, what.version}, value).second;
      if (!is_new)
        problems_.push_back(fmt::format("role {}: two values are version {} of storage {}",
                                        role_.name, what.version, what.storage));
      if (role_.storages[what.storage].persistent && what.version == 0) is_there[value] = true;
    }
    for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
      const Op& op = role_.ops[index];
      for (const ValueId value : role_.consumed_by(op)) {
        if (!is_there[value])
          Problem(index, fmt::format("consumes value {} that nothing before it produced", value));
      }
      for (const ValueId value : role_.produced_by(op))
        Produce(index, op, value, versions, is_there);
    }
  }

  void Produce(std::uint32_t index, const Op& op, ValueId value,
               const std::map<std::pair<StorageId, std::uint32_t>, ValueId>& versions,
               std::vector<bool>& is_there) {
    if (is_there[value]) Problem(index, fmt::format("produces value {} a second time", value));
    is_there[value] = true;
    const Value& what = role_.values[value];
    if (what.version == 0) return;
    const auto before = versions.find({what.storage, what.version - 1});
    const auto consumed = role_.consumed_by(op);
    const bool follows = before != versions.end() && std::find(consumed.begin(), consumed.end(),
                                                               before->second) != consumed.end();
    if (!follows)
      Problem(index,
              fmt::format("produces version {} of storage {} without consuming the one before",
                          what.version, what.storage));
  }

  /// A module's microbatch runs forward before backward, each block once per step.
  void CheckForwardBeforeBackward() {
    using Key = std::tuple<int, int, int, int, int>;  // step, module, chunk, microbatch, block
    std::set<Key> backward_blocks;
    std::set<Key> forward_blocks;
    std::set<Key> forwards;  // block left out
    for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
      const Op& op = role_.ops[index];
      if (op.kind != OpKind::kCompute) continue;
      const Key key{op.step, op.module, op.chunk, op.microbatch, op.block};
      const Key whole{op.step, op.module, op.chunk, op.microbatch, 0};
      if (op.action() == Action::kForward) {
        if (!forward_blocks.insert(key).second) Problem(index, "runs a second time in its step");
        forwards.insert(whole);
      } else if (op.action() == Action::kBackward) {
        if (!forwards.contains(whole)) Problem(index, "comes before its forward");
        if (!backward_blocks.insert(key).second) Problem(index, "runs a second time in its step");
      }
    }
  }

  const Program& program_;
  const Role& role_;
  std::vector<std::string>& problems_;
};

/// Most forwards without their backward at a time, per role, against what the schedule allows.
void CheckInFlight(const Program& program, const Role& role, std::vector<std::string>& problems) {
  std::map<std::pair<int, int>, int> in_flight;  // module, chunk
  std::map<std::pair<int, int>, int> most;
  std::set<std::tuple<int, int, int, int>> seen;
  std::set<std::tuple<int, int, int, int>> begun;
  bool has_backward = false;
  for (const Op& op : role.ops) {
    if (op.kind != OpKind::kCompute || op.microbatch < 0) continue;
    const std::tuple key{int{op.step}, int{op.module}, int{op.chunk}, int{op.microbatch}};
    const std::pair at{int{op.module}, int{op.chunk}};
    if (op.action() == Action::kForward) {
      if (seen.insert(key).second) most[at] = std::max(most[at], ++in_flight[at]);
    } else if (op.action() == Action::kBackward && begun.insert(key).second) {
      has_backward = true;
      --in_flight[at];
    }
  }
  if (!has_backward) return;
  int total = 0;
  for (const PlacedModule& module : program.modules) total += module.grid.size(Axis::kPp);
  for (const auto& [at, count] : most) {
    // No stage is farther from the sink than all stages together.
    if (count > total) {
      problems.push_back(fmt::format(
          "role {}: {} microbatches of {} in flight, the schedule allows {}", role.name, count,
          program.modules[static_cast<std::size_t>(at.first)].module.name, total));
    }
  }
}

/// What boundaries send is what they receive, rank by rank and message by message.
void CheckBoundaryBytes(const Program& program, std::vector<std::string>& problems) {
  for (std::size_t edge = 0; edge < program.boundaries.size(); ++edge) {
    std::int64_t tokens[4] = {0, 0, 0, 0};
    for (const RankBoundary& rank : program.boundaries[edge].ranks) {
      const std::vector<BoundaryMessage>* lists[] = {&rank.sends_forward, &rank.receives_forward,
                                                     &rank.sends_backward, &rank.receives_backward};
      for (std::size_t list = 0; list < 4; ++list) {
        for (const BoundaryMessage& message : *lists[list]) tokens[list] += message.tokens.size();
      }
    }
    if (tokens[0] != tokens[1] || tokens[2] != tokens[3]) {
      problems.push_back(
          fmt::format("edge {}: {} tokens sent and {} received forward, {} and {} backward", edge,
                      tokens[0], tokens[1], tokens[2], tokens[3]));
    }
  }
}

}  // namespace

Validation Validate(const Program& program) {
  Validation validation;
  for (const Role& role : program.roles) {
    RoleCheck(program, role, validation.problems).Run();
    CheckInFlight(program, role, validation.problems);
  }
  CheckBoundaryBytes(program, validation.problems);
  if (validation.ok()) internal::RendezvousRun(program, validation.problems).Run();
  return validation;
}

}  // namespace isthmus::plan
