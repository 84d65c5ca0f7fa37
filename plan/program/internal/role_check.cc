#include "plan/program/internal/role_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "plan/program/print.h"
#include "plan/schedule/graph_aware.h"
#include "plan/schedule/interleaved.h"

namespace isthmus::plan::internal {
namespace {

/// Collects what is wrong with the ops of a role.
class Findings {
 public:
  Findings(const Program& program, const Role& role) : program_(program), role_(role) {}

  void OfOp(std::uint32_t op, const std::string& text) {
    const std::string name = Describe(program_, role_, role_.ops[op]);
    found_.push_back(fmt::format("role {}: op {} ({}): {}", role_.name, op, name, text));
  }
  void OfRole(const std::string& text) {
    found_.push_back(fmt::format("role {}: {}", role_.name, text));
  }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  const Program& program_;
  const Role& role_;
  std::vector<std::string> found_;
};

/// The shortest tables that ranks of the role have: {sizes, works}.
std::pair<std::size_t, std::size_t> TableSizes(const Program& program, const Role& role) {
  const auto index = static_cast<std::uint32_t>(&role - program.roles.data());
  std::pair<std::size_t, std::size_t> least{SIZE_MAX, SIZE_MAX};
  for (std::size_t rank = 0; rank < program.role_of_rank.size(); ++rank) {
    if (program.role_of_rank[rank] != index) continue;
    const SizeTable& table = program.tables[program.table_of_rank[rank]];
    least.first = std::min(least.first, table.bytes.size());
    least.second = std::min(least.second, table.works.size());
  }
  return least;
}

bool LaneFits(const Lane& lane, const Op& op) {
  switch (op.kind) {
    case OpKind::kCompute:
    case OpKind::kOptimizer:
      return lane.kind == LaneKind::kCompute;
    case OpKind::kCollective:
      return lane.kind == LaneKind::kCommunicator && lane.group == op.group;
    case OpKind::kP2P:
      return lane.kind == LaneKind::kP2P;
    case OpKind::kCopy:
      return lane.kind == (op.copy() == CopyDirection::kToHost ? LaneKind::kCopyToHost
                                                               : LaneKind::kCopyToDevice);
  }
  return false;
}

/// What is wrong with the indices of one op, "" if nothing.
std::string BadReference(const Program& program, const Role& role, const Op& op,
                         const std::pair<std::size_t, std::size_t>& tables) {
  const bool needs_group = op.kind == OpKind::kCollective;
  if (op.group == kNone32 ? needs_group : op.group >= role.groups.size())
    return "its group doesn't exist";
  if (op.lane >= role.lanes.size()) return "its lane doesn't exist";
  if (!LaneFits(role.lanes[op.lane], op)) return "it is on a lane of another kind";
  if (op.module >= program.modules.size()) return "its module doesn't exist";
  const bool has_work = op.kind == OpKind::kCompute || op.kind == OpKind::kOptimizer;
  const std::size_t sizes = has_work ? tables.second : tables.first;
  if (op.kind != OpKind::kP2P && op.size >= sizes) return "its size or work doesn't exist";
  const auto exists = [&](ValueId value) { return value < role.values.size(); };
  for (const ValueId value : role.consumed_by(op)) {
    if (!exists(value)) return fmt::format("it consumes value {}, which doesn't exist", value);
  }
  for (const ValueId value : role.produced_by(op)) {
    if (!exists(value)) return fmt::format("it produces value {}, which doesn't exist", value);
  }
  for (const Transfer& transfer : role.transfers_of(op)) {
    if (transfer.peer >= role.peers.size() || !exists(transfer.value) ||
        transfer.size >= tables.first) {
      return "a transfer's peer, value or size doesn't exist";
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> CheckReferences(const Program& program, const Role& role) {
  std::vector<std::string> found;
  const auto tables = TableSizes(program, role);
  for (std::size_t index = 0; index < role.ops.size(); ++index) {
    const std::string text = BadReference(program, role, role.ops[index], tables);
    if (!text.empty()) found.push_back(fmt::format("role {}: op {}: {}", role.name, index, text));
  }
  for (const PeerRef& peer : role.peers) {
    const bool exists =
        peer.kind == PeerRef::Kind::kPipeline
            ? peer.module < program.modules.size()
            : peer.edge < program.boundaries.size() && !program.boundaries[peer.edge].ranks.empty();
    if (!exists) {
      found.push_back(fmt::format("role {}: a peer's module or edge doesn't exist", role.name));
    }
  }
  for (const Value& value : role.values) {
    if (value.storage < role.storages.size()) continue;
    found.push_back(fmt::format("role {}: storage {} doesn't exist", role.name, value.storage));
  }
  return found;
}

namespace {

/// Follows the versions of every storage through the ops of a role.
class VersionCheck {
 public:
  VersionCheck(const Program& program, const Role& role)
      : role_(role),
        findings_(program, role),
        is_there_(role.values.size(), false),
        newest_(role.storages.size(), 0) {
    std::set<std::pair<StorageId, std::uint32_t>> versions;
    for (ValueId value = 0; value < role.values.size(); ++value) {
      const Value& what = role.values[value];
      if (!versions.insert({what.storage, what.version}).second) {
        findings_.OfRole(
            fmt::format("two values are version {} of storage {}", what.version, what.storage));
      }
      if (role.storages[what.storage].persistent && what.version == 0) is_there_[value] = true;
    }
  }

  std::vector<std::string> Run() {
    for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
      const Op& op = role_.ops[index];
      for (const ValueId value : role_.consumed_by(op)) Consume(index, value);
      for (const ValueId value : role_.produced_by(op)) Produce(index, value);
      CheckTransfers(index);
    }
    return findings_.Take();
  }

 private:
  void Consume(std::uint32_t op, ValueId value) {
    const Value& what = role_.values[value];
    if (!is_there_[value]) {
      findings_.OfOp(op, fmt::format("consumes value {} that nothing before it produced", value));
    } else if (what.version < newest_[what.storage]) {
      findings_.OfOp(op, fmt::format("consumes version {} of storage {}, which version {} replaced",
                                     what.version, what.storage, newest_[what.storage]));
    }
  }

  void Produce(std::uint32_t op, ValueId value) {
    const Value& what = role_.values[value];
    if (is_there_[value]) findings_.OfOp(op, fmt::format("produces value {} a second time", value));
    is_there_[value] = true;
    newest_[what.storage] = std::max(newest_[what.storage], what.version);
    if (what.version == 0) return;
    const auto consumed = role_.consumed_by(role_.ops[op]);
    const bool follows = std::any_of(consumed.begin(), consumed.end(), [&](ValueId before) {
      return role_.values[before].storage == what.storage &&
             role_.values[before].version + 1 == what.version;
    });
    if (follows) return;
    findings_.OfOp(op,
                   fmt::format("produces version {} of storage {} without consuming the one before",
                               what.version, what.storage));
  }

  void CheckTransfers(std::uint32_t index) {
    const Op& op = role_.ops[index];
    for (const Transfer& transfer : role_.transfers_of(op)) {
      const auto values = transfer.sends ? role_.consumed_by(op) : role_.produced_by(op);
      if (std::find(values.begin(), values.end(), transfer.value) != values.end()) continue;
      findings_.OfOp(index, fmt::format("{} value {} that it doesn't {}",
                                        transfer.sends ? "sends" : "receives", transfer.value,
                                        transfer.sends ? "consume" : "produce"));
    }
  }

  const Role& role_;
  Findings findings_;
  std::vector<bool> is_there_;         // by value
  std::vector<std::uint32_t> newest_;  // by storage: version
};

/// A microbatch of a module's chunk in one step.
using Pass = std::tuple<int, int, int, int>;
Pass PassOf(const Op& op) { return {op.step, op.module, op.chunk, op.microbatch}; }

bool Is(const Op& op, Action action) {
  return op.kind == OpKind::kCompute && op.action() == action;
}

/// A backward, whole or the part that passes the gradient on.
bool IsBackward(const Op& op) {
  return Is(op, Action::kBackward) || Is(op, Action::kBackwardInput);
}

/// Most turns (microbatches of a chunk) of `module` at `stage` that the schedule of the program
/// keeps in flight.
int MostInFlight(const Program& program, int module, int stage) {
  const auto stages_of = [&](int index) {
    return program.modules[static_cast<std::size_t>(index)].grid.size(Axis::kPp);
  };
  int decoder = 0;
  std::vector<int> stages;
  for (int index = 0; index < static_cast<int>(program.modules.size()); ++index) {
    stages.push_back(stages_of(index));
    if (program.modules[static_cast<std::size_t>(index)].module.kind == ModuleKind::kDecoder)
      decoder = index;
  }
  const auto num_microbatches = static_cast<int>(program.num_microbatches);
  if (program.placement == Placement::kNonColocated) {
    const auto depths = WarmupDepths(stages, program.edges, program.schedule.warmup_rule);
    const int warmup = depths[static_cast<std::size_t>(module)][static_cast<std::size_t>(stage)];
    return std::min(warmup + 1, num_microbatches);
  }
  const int num_chunks = program.modules[static_cast<std::size_t>(decoder)].num_chunks();
  const InterleavedStage at{.stage = module == decoder ? stage : 0,
                            .num_stages = stages_of(decoder),
                            .num_chunks = num_chunks};
  if (module == decoder) {
    return std::min(InterleavedWarmup(at, num_microbatches) + 1, num_chunks * num_microbatches);
  }
  // A homogeneous encoder runs inside the LLM's first virtual stage, a colocated one once a step.
  return program.placement == Placement::kHomogeneous ? MostInFirstChunk(at, num_microbatches) : 1;
}

}  // namespace

std::vector<std::string> CheckValues(const Program& program, const Role& role) {
  return VersionCheck(program, role).Run();
}

std::vector<std::string> CheckForwardBeforeBackward(const Program& program, const Role& role) {
  Findings findings(program, role);
  std::set<std::pair<Pass, int>> blocks[3];  // that ran: forward, backward, later weight gradient
  std::set<std::pair<Pass, int>> split;      // whose weight gradient comes later
  std::set<Pass> forwards;
  std::set<Pass> backwards;
  std::set<int> with_backward;  // modules
  for (std::uint32_t index = 0; index < role.ops.size(); ++index) {
    const Op& op = role.ops[index];
    const bool forward = Is(op, Action::kForward);
    const bool weight = Is(op, Action::kBackwardWeight);
    if (!forward && !weight && !IsBackward(op)) continue;
    const std::pair<Pass, int> block{PassOf(op), op.block};
    if (!blocks[forward ? 0 : weight ? 2 : 1].insert(block).second) {
      findings.OfOp(index, "runs a second time in its step");
    }
    if (Is(op, Action::kBackwardInput)) split.insert(block);
    if (weight && split.erase(block) == 0) findings.OfOp(index, "comes without its input gradient");
    if (weight) continue;
    if (!forward && !forwards.contains(PassOf(op)))
      findings.OfOp(index, "comes before its forward");
    if (forward && backwards.contains(PassOf(op))) findings.OfOp(index, "comes after its backward");
    (forward ? forwards : backwards).insert(PassOf(op));
    if (!forward) with_backward.insert(op.module);
  }
  for (const auto& [pass, block] : split) {
    findings.OfRole(
        fmt::format("block {} of microbatch {} has no weight gradient", block, std::get<3>(pass)));
  }
  for (const Pass& pass : forwards) {
    const auto& [step, module, chunk, microbatch] = pass;
    if (!with_backward.contains(module) || backwards.contains(pass)) continue;
    findings.OfRole(fmt::format("microbatch {} of {} in step {} has no backward", microbatch,
                                program.modules[static_cast<std::size_t>(module)].module.name,
                                step));
  }
  return findings.Take();
}

std::vector<std::string> CheckInFlight(const Program& program, const Role& role) {
  std::set<Pass> begun;
  std::set<Pass> left;
  std::map<int, int> in_flight;  // by module
  std::map<int, int> most;
  for (const Op& op : role.ops) {
    if (Is(op, Action::kForward) && begun.insert(PassOf(op)).second) {
      most[op.module] = std::max(most[op.module], ++in_flight[op.module]);
    } else if (IsBackward(op) && left.insert(PassOf(op)).second) {
      --in_flight[op.module];
    }
  }
  Findings findings(program, role);
  for (const ModuleStage& at : role.stages) {
    const bool has_backward = std::any_of(
        left.begin(), left.end(), [&](const Pass& pass) { return std::get<1>(pass) == at.module; });
    const int bound = MostInFlight(program, at.module, at.stage);
    if (!has_backward || most[at.module] <= bound) continue;
    findings.OfRole(fmt::format("{} microbatches of {} in flight, the schedule allows {}",
                                most[at.module], program.modules[at.module].module.name, bound));
  }
  return findings.Take();
}

}  // namespace isthmus::plan::internal
