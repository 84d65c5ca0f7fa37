#include "tests/twin/twin_check.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "backend/fake/execute.h"
#include "plan/program/names.h"
#include "sim/simulate.h"
#include "traces/recorder.h"

namespace isthmus::tests {
namespace {

using Lanes = std::vector<std::vector<std::uint32_t>>;
using Messages = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int64_t>>;
/// (name, members) of a communicator; kind and bytes of what ran on it.
using Bytes = std::map<plan::CollectiveKind, std::int64_t>;
using Groups = std::map<std::pair<std::string, std::vector<base::Rank>>, Bytes>;

const traces::RoleRecord& RoleOf(const traces::Trace& trace, std::uint32_t cls) {
  return trace.header.roles[trace.header.classes[cls].role];
}

/// [class][lane]: ops in the order they ran.
std::vector<Lanes> LanesOf(const traces::Trace& trace) {
  std::vector<Lanes> lanes;
  for (std::uint32_t cls = 0; cls < trace.header.classes.size(); ++cls) {
    lanes.emplace_back(RoleOf(trace, cls).lanes.size());
  }
  for (const traces::Event& event : trace.events) {
    if (event.inner > 0) continue;
    const std::uint16_t lane = RoleOf(trace, event.rank_class).ops[event.op].lane;
    lanes[event.rank_class][lane].push_back(event.op);
  }
  return lanes;
}

/// Sizes of what ran from rank to rank, in the senders' host order. Needs one class per rank.
Messages MessagesOf(const traces::Trace& trace) {
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> sent;
  for (const traces::Event& event : trace.events) {
    if (event.inner == 0) continue;
    const traces::OpRecord& op = RoleOf(trace, event.rank_class).ops[event.op];
    if (op.kind != "p2p" || !op.transfers[event.inner - 1].sends) continue;
    sent.emplace_back(event.rank_class, event.op, event.inner);
  }
  std::sort(sent.begin(), sent.end());
  Messages messages;
  for (const auto& [from, op, inner] : sent) {
    const traces::TransferRecord& transfer = RoleOf(trace, from).ops[op].transfers[inner - 1];
    const std::uint32_t to = trace.header.classes[from].peers[transfer.peer];
    messages[{static_cast<std::int32_t>(from), static_cast<std::int32_t>(to)}].push_back(
        transfer.bytes);
  }
  return messages;
}

/// What the program plans, summed over the ops of each rank: all members must plan the same.
class PlannedTraffic {
 public:
  explicit PlannedTraffic(const plan::Program& program) : program_(program) {
    for (int index = 0; index < program.num_ranks; ++index) AddRank(base::Rank{index});
  }
  Messages messages;
  Groups groups;
  std::vector<std::string> contradictions;

 private:
  void AddRank(base::Rank rank) {
    const plan::Role& role = program_.role(rank);
    Groups of_rank;
    for (const plan::GroupRef& group : role.groups) of_rank[KeyOf(rank, group)];
    for (const plan::Op& op : role.ops) {
      if (op.kind == plan::OpKind::kCollective) {
        const std::int64_t bytes = program_.Size(rank, op.size).value();
        if (bytes > 0) of_rank[KeyOf(rank, role.groups[op.group])][op.collective()] += bytes;
      }
      for (const plan::Transfer& transfer : role.transfers_of(op)) {
        const std::int64_t bytes = program_.Size(rank, transfer.size).value();
        if (!transfer.sends || bytes == 0) continue;
        const base::Rank to = program_.Peer(rank, role.peers[transfer.peer]);
        messages[{rank.value(), to.value()}].push_back(bytes);
      }
    }
    for (const auto& [key, bytes] : of_rank) {
      const auto [at, is_new] = groups.try_emplace(key, bytes);
      if (!is_new && at->second != bytes) {
        contradictions.push_back(
            fmt::format("rank {} plans other bytes on {}", rank.value(), key.first));
      }
    }
  }

  std::pair<std::string, std::vector<base::Rank>> KeyOf(base::Rank rank,
                                                        const plan::GroupRef& group) const {
    return {plan::SharedGroupName(program_, group), program_.Members(rank, group)};
  }

  const plan::Program& program_;
};

Messages MessagesOf(const backend::Outcome& outcome) {
  Messages messages;
  for (const backend::ChannelCount& channel : outcome.channels) {
    auto& list = messages[{channel.from.value(), channel.to.value()}];
    for (const base::Bytes bytes : channel.messages) list.push_back(bytes.value());
  }
  return messages;
}

/// Checks of one program; collects what differs.
class TwinCheck {
 public:
  TwinCheck(const plan::Program& program, const topology::Cluster& cluster,
            const profiles::Profile& profile)
      : program_(program), cluster_(cluster), profile_(profile) {}

  std::vector<std::string> Run() {
    executed_ = backend::Execute(program_, {}, measured_sink_);
    if (executed_.deadlock) differences_.push_back("fake: " + executed_.explanation);
    predicted_ = Simulate(sim::Folding::kOff);
    if (!differences_.empty()) return differences_;
    CompareOps();
    CompareRecords();
    CompareTraffic();
    CompareMembers();
    CompareFolded();
    return differences_;
  }

 private:
  const traces::Trace& measured() const { return measured_sink_.trace(); }
  void Expect(bool holds, const std::string& text) {
    if (!holds) differences_.push_back(text);
  }

  traces::Trace Simulate(sim::Folding folding) {
    traces::Recorder recorder;
    const sim::Outcome outcome =
        sim::Simulate(program_, cluster_, profile_, {.folding = folding}, {}, recorder);
    Expect(!outcome.deadlock, "sim: " + outcome.explanation);
    return recorder.Take();
  }

  void CompareOps() {
    const std::vector<Lanes> simulated = LanesOf(predicted_);
    const std::vector<Lanes> executed = LanesOf(measured());
    for (std::size_t rank = 0; rank < executed.size(); ++rank) {
      Expect(executed[rank] == simulated[rank],
             fmt::format("rank {}: other ops than in sim", rank));
      Expect(executed[rank] == executed_.ops_by_lane[rank],
             fmt::format("rank {}: its trace has other ops", rank));
      // Every op once, in list order on its lane.
      Lanes planned(executed[rank].size());
      const plan::Role& role = program_.role(base::Rank(rank));
      for (std::uint32_t op = 0; op < role.ops.size(); ++op)
        planned[role.ops[op].lane].push_back(op);
      Expect(executed[rank] == planned, fmt::format("rank {}: other ops than planned", rank));
    }
  }

  /// All but the shares inside fused ops, which only a cost model can know.
  void CompareRecords() {
    for (std::uint32_t rank = 0; rank < measured().header.classes.size(); ++rank) {
      const traces::RoleRecord& executed = RoleOf(measured(), rank);
      traces::RoleRecord simulated = RoleOf(predicted_, rank);
      for (traces::OpRecord& op : simulated.ops) op.inner_shares.clear();
      Expect(executed == simulated, fmt::format("rank {}: described unlike in sim", rank));
    }
    Expect(measured().header.program_hash == predicted_.header.program_hash,
           "program hashes differ");
  }

  void CompareTraffic() {
    const PlannedTraffic planned(program_);
    differences_.insert(differences_.end(), planned.contradictions.begin(),
                        planned.contradictions.end());
    Expect(MessagesOf(executed_) == planned.messages, "fake: other messages than planned");
    Expect(MessagesOf(measured()) == planned.messages, "fake: its trace has other messages");
    Expect(MessagesOf(predicted_) == planned.messages, "sim: other messages than planned");
    Groups moved;
    for (const backend::GroupCount& group : executed_.groups) {
      std::vector<base::Rank> members = group.members;
      std::sort(members.begin(), members.end());
      Expect(group.joined == members, fmt::format("{}: not all members came", group.name));
      if (group.compute) continue;
      Bytes& bytes = moved[{group.name, group.members}];
      for (const auto& [kind, count] : group.bytes) bytes[kind] = count.value();
    }
    Expect(moved == planned.groups, "fake: other bytes on communicators than planned");
  }

  void CompareMembers() {
    for (std::size_t rank = 0; rank < measured().header.classes.size(); ++rank) {
      const plan::Role& role = program_.role(base::Rank(rank));
      for (std::size_t group = 0; group < role.groups.size(); ++group) {
        std::vector<std::uint32_t> planned;
        for (const base::Rank member : program_.Members(base::Rank(rank), role.groups[group])) {
          planned.push_back(static_cast<std::uint32_t>(member.value()));
        }
        std::sort(planned.begin(), planned.end());
        for (const traces::Trace* trace :
             {&measured(), static_cast<const traces::Trace*>(&predicted_)}) {
          const traces::Header& header = trace->header;
          Expect(header.groups[header.classes[rank].groups[group]] == planned,
                 fmt::format("rank {}: group {} has other members in the {} trace", rank, group,
                             traces::ToText(header.kind)));
        }
      }
    }
  }

  void CompareFolded() {
    const traces::Trace folded = Simulate(sim::Folding::kAuto);
    const std::vector<Lanes> lanes = LanesOf(folded);
    for (std::size_t cls = 0; cls < lanes.size(); ++cls) {
      for (const std::int32_t rank : folded.header.classes[cls].members) {
        Expect(lanes[cls] == executed_.ops_by_lane[static_cast<std::size_t>(rank)],
               fmt::format("rank {}: other ops than its folded class", rank));
      }
    }
  }

  const plan::Program& program_;
  const topology::Cluster& cluster_;
  const profiles::Profile& profile_;
  traces::Recorder measured_sink_;
  traces::Trace predicted_;
  backend::Outcome executed_;
  std::vector<std::string> differences_;
};

}  // namespace

std::vector<std::string> CheckTwins(const plan::Program& program, const topology::Cluster& cluster,
                                    const profiles::Profile& profile) {
  return TwinCheck(program, cluster, profile).Run();
}

}  // namespace isthmus::tests
