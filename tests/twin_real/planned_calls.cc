#include "tests/twin_real/planned_calls.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plan/program/names.h"

namespace isthmus::tests {
namespace {

std::int64_t WithoutSelf(const std::vector<plan::Interval>& parts, std::size_t self) {
  std::int64_t tokens = 0;
  for (std::size_t member = 0; member < parts.size(); ++member) {
    if (member != self) tokens += parts[member].size();
  }
  return tokens;
}

class Planner {
 public:
  Planner(const plan::Program& program, base::Rank rank)
      : program_(program), rank_(rank), role_(program.role(rank)) {}

  std::vector<PlannedCall> Run() {
    for (op_ = 0; op_ < role_.ops.size(); ++op_) {
      const plan::Op& op = role_.ops[op_];
      if (op.kind == plan::OpKind::kCompute) AddInner(op);
      if (op.kind == plan::OpKind::kCollective) AddCollective(op);
      if (op.kind == plan::OpKind::kP2P) AddMessages(op);
    }
    return std::move(calls_);
  }

 private:
  void Add(std::string kind, const std::vector<base::Rank>& members, std::string communicator,
           std::int64_t bytes, int peer = -1) {
    if (members.size() < 2 || bytes == 0) return;
    calls_.push_back(
        {{.op = op_, .kind = std::move(kind), .members = members, .bytes = bytes, .peer = peer},
         std::move(communicator)});
  }

  void AddInner(const plan::Op& op) {
    const plan::PlacedModule& placed = program_.modules[op.module];
    for (const plan::RepeatedSegments& part : program_.WorkOf(rank_, op).parts) {
      for (int repetition = 0; repetition < part.count; ++repetition) {
        for (const plan::Segment& segment : part.segments) {
          if (segment.collective) AddInner(placed, *segment.collective);
        }
      }
    }
  }

  void AddInner(const plan::PlacedModule& placed, const plan::InnerCollective& inner) {
    const std::vector<base::Rank> members = placed.grid.Group(rank_, inner.axes);
    const std::string name = "inside " + placed.module.name + " " + plan::ToText(inner.axes);
    if (inner.kind != plan::CollectiveKind::kRingExchange) {
      return Add(plan::ToText(inner.kind), members, name, inner.bytes.value());
    }
    const auto self = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank_) -
                                               members.begin());
    for (int step = 0; step < inner.steps; ++step) {
      const base::Rank before = members[(self + members.size() - 1) % members.size()];
      const base::Rank behind = members[(self + 1) % members.size()];
      Add("receive", members, name, inner.bytes.value(), before.value());
      Add("send", members, name, inner.bytes.value(), behind.value());
    }
  }

  void AddCollective(const plan::Op& op) {
    const plan::GroupRef& group = role_.groups[op.group];
    const std::vector<base::Rank> members = program_.Members(rank_, group);
    std::int64_t bytes = program_.Size(rank_, op.size).value();
    if (op.purpose == plan::Purpose::kBoundary && bytes > 0) {
      bytes = BoundaryBytes(op, group, members, bytes);
    }
    if (op.collective() == plan::CollectiveKind::kReduceScatter ||
        op.purpose == plan::Purpose::kParameterGather) {
      const plan::ModuleSettings& settings = program_.modules[op.module].module.settings;
      const bool gathers = op.purpose == plan::Purpose::kParameterGather;
      const std::int64_t element =
          plan::BytesOf(gathers ? plan::ActivationType(settings) : settings.gradient_dtype).value();
      const std::int64_t parts = element * static_cast<std::int64_t>(members.size());
      bytes = (bytes + parts - 1) / parts * parts;
    }
    Add(plan::ToText(op.collective()), members,
        "collectives of " + plan::SharedGroupName(program_, group), bytes);
  }

  std::int64_t BoundaryBytes(const plan::Op& op, const plan::GroupRef& group,
                             const std::vector<base::Rank>& members, std::int64_t bytes) const {
    const plan::Boundary& boundary = program_.boundaries[group.edge];
    const plan::Storage& produced =
        role_.storages[role_.values[role_.produced_by(op).front()].storage];
    const bool forward = produced.kind == plan::ValueKind::kActivation;
    const plan::RankBoundary& here = boundary.At(rank_, op.microbatch);
    const plan::BoundaryStep& step = (forward ? here.forward : here.backward)[op.block];
    const std::int64_t row_bytes = bytes / step.tokens;
    const auto size = static_cast<std::int64_t>(members.size());
    if (op.collective() == plan::CollectiveKind::kAllGather) {
      return *std::max_element(step.member_tokens.begin(), step.member_tokens.end()) * size *
             row_bytes;
    }
    if (op.collective() != plan::CollectiveKind::kAllToAllV) return bytes;
    std::int64_t busiest = 0;
    std::int64_t own = 0;
    for (std::size_t member = 0; member < members.size(); ++member) {
      const std::int64_t tokens = BusiestOf(boundary, members, member, forward);
      busiest = std::max(busiest, tokens);
      if (members[member] == rank_) own = tokens;
    }
    EXPECT_EQ(step.tokens, (busiest * size + size - 2) / (size - 1));
    return own * row_bytes;
  }

  /// Tokens that a member sends to others or gets from them, the larger one.
  static std::int64_t BusiestOf(const plan::Boundary& boundary,
                                const std::vector<base::Rank>& members, std::size_t member,
                                bool forward) {
    const auto parts_of = [&](base::Rank rank) -> const std::vector<plan::Interval>& {
      const plan::RankBoundary& entry = boundary.ranks[rank.index()];
      return forward ? entry.all_to_all_forward : entry.all_to_all_backward;
    };
    std::int64_t received = 0;
    for (std::size_t other = 0; other < members.size(); ++other) {
      if (other != member) received += parts_of(members[other])[member].size();
    }
    return std::max(received, WithoutSelf(parts_of(members[member]), member));
  }

  void AddMessages(const plan::Op& op) {
    for (const bool sends : {false, true}) {
      for (const plan::Transfer& transfer : role_.transfers_of(op)) {
        if (transfer.sends != sends) continue;
        Add(sends ? "send" : "receive", AllRanks(), "messages",
            program_.Size(rank_, transfer.size).value(),
            program_.Peer(rank_, role_.peers[transfer.peer]).value());
      }
    }
  }

  std::vector<base::Rank> AllRanks() const {
    std::vector<base::Rank> all;
    for (int rank = 0; rank < program_.num_ranks; ++rank) all.emplace_back(rank);
    return all;
  }

  const plan::Program& program_;
  base::Rank rank_;
  const plan::Role& role_;
  std::uint32_t op_ = 0;
  std::vector<PlannedCall> calls_;
};

}  // namespace

std::vector<PlannedCall> PlanCalls(const plan::Program& program, base::Rank rank) {
  return Planner(program, rank).Run();
}

}  // namespace isthmus::tests
