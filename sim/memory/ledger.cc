#include "sim/memory/ledger.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plan/program/print.h"

namespace isthmus::sim {

Ledger::Ledger(const plan::Program& program, const plan::Role& role, const plan::SizeTable& table)
    : program_(program), role_(role), table_(table) {
  AddStorages();
  AddTransients();
  std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return a.op != b.op ? a.op < b.op : (a.bytes > 0) > (b.bytes > 0);
  });
}

// What a P2P op only waits for it does not hold.
bool Ledger::Holds(const plan::Op& op, plan::ValueId consumed) const {
  if (op.kind != plan::OpKind::kP2P) return true;
  const auto transfers = role_.transfers_of(op);
  return std::any_of(transfers.begin(), transfers.end(), [&](const plan::Transfer& transfer) {
    return transfer.sends && transfer.value == consumed;
  });
}

std::vector<Ledger::Life> Ledger::LivesOf() const {
  std::vector<Life> lives(role_.storages.size());
  const auto touch = [&](plan::ValueId value, std::uint32_t op) {
    Life& life = lives[role_.values[value].storage];
    life.first = std::min(life.first, op);
    life.last = std::max(life.last, op);
  };
  for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
    const plan::Op& op = role_.ops[index];
    for (const plan::ValueId value : role_.produced_by(op)) touch(value, index);
    for (const plan::ValueId value : role_.consumed_by(op)) {
      if (Holds(op, value)) touch(value, index);
    }
  }
  return lives;
}

void Ledger::Take(std::uint32_t first, std::uint32_t last, std::int64_t bytes,
                  plan::MemoryCategory category) {
  changes_.push_back({first, bytes, category});
  changes_.push_back({last, -bytes, category});
}

void Ledger::AddPersistent(plan::StorageId storage, std::int64_t bytes,
                           plan::MemoryCategory category) {
  persistent_[static_cast<std::size_t>(category)] += bytes;
  for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
    const plan::Op& op = role_.ops[index];
    if (op.kind != plan::OpKind::kCopy) continue;
    const auto produced = role_.produced_by(op);
    const bool moves = std::any_of(produced.begin(), produced.end(), [&](plan::ValueId value) {
      return role_.values[value].storage == storage;
    });
    if (!moves) continue;
    const bool leaves = op.copy() == plan::CopyDirection::kToHost;
    changes_.push_back({index, leaves ? -bytes : bytes, category});
  }
}

void Ledger::AddStorages() {
  const std::vector<Life> lives = LivesOf();
  for (plan::StorageId storage = 0; storage < role_.storages.size(); ++storage) {
    const plan::Storage& what = role_.storages[storage];
    const std::int64_t bytes = what.size == plan::kNone32 ? 0 : table_.bytes[what.size].value();
    if (bytes == 0) continue;
    if (what.persistent) {
      AddPersistent(storage, bytes, what.category);
    } else if (lives[storage].first != plan::kNone32) {
      Take(lives[storage].first, lives[storage].last, bytes, what.category);
    }
  }
}

const plan::Work* Ledger::WorkOf(const plan::Op& op) const {
  if (op.kind != plan::OpKind::kCompute && op.kind != plan::OpKind::kOptimizer) return nullptr;
  return &program_.works[table_.works[op.size]];
}

void Ledger::AddTransients() {
  for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
    const plan::Work* work = WorkOf(role_.ops[index]);
    if (work == nullptr || work->transient_bytes.value() == 0) continue;
    Take(index, index, work->transient_bytes.value(), plan::MemoryCategory::kTransient);
  }
}

std::string Ledger::PhaseOf(const plan::Op& op) const {
  const plan::Work* work = WorkOf(op);
  return work != nullptr ? plan::ToText(work->moment) : "exchange";
}

std::int64_t Ledger::TimeOf(const Change& change, const ClassTimes& times) const {
  if (change.bytes > 0) return times.start_ps[change.op];
  // A P2P op holds what it sends until its last transfer is over.
  const plan::Op& op = role_.ops[change.op];
  std::int64_t end = times.end_ps[change.op];
  for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
    end = std::max(end, times.transfer_end_ps[at]);
  }
  return end;
}

traces::MemoryPeak Ledger::Peak(const MemoryFacts& facts, int num_communicators,
                                const ClassTimes* times) const {
  Bytes live = persistent_;
  std::int64_t sum = 0;
  for (const std::int64_t bytes : live) sum += bytes;
  Bytes at_peak = live;
  traces::MemoryPeak peak{.peak_bytes = sum, .moment = "between steps", .phase = "between steps"};
  const Change* moment = nullptr;
  std::int64_t time_ps = 0;
  for (const Change& change : changes_) {
    live[static_cast<std::size_t>(change.category)] += change.bytes;
    sum += change.bytes;
    if (times != nullptr) time_ps = std::max(time_ps, TimeOf(change, *times));
    if (sum <= peak.peak_bytes) continue;
    peak.peak_bytes = sum;
    peak.time_ps = time_ps;
    at_peak = live;
    moment = &change;
  }
  if (moment != nullptr) {
    peak.moment = plan::Describe(program_, role_, role_.ops[moment->op]);
    peak.phase = PhaseOf(role_.ops[moment->op]);
  }
  for (std::size_t category = 0; category < at_peak.size(); ++category) {
    if (at_peak[category] == 0) continue;
    peak.categories[plan::ToText(static_cast<plan::MemoryCategory>(category))] = at_peak[category];
  }
  AddWhatIsNoTensor(facts, num_communicators, peak);
  return peak;
}

std::vector<traces::MemoryCounter> Ledger::Counters(std::uint32_t rank_class,
                                                    const MemoryFacts& facts,
                                                    const ClassTimes& times) const {
  std::int64_t sum = facts.workspace_bytes;
  for (const std::int64_t bytes : persistent_) sum += bytes;
  std::vector<traces::MemoryCounter> counters{{rank_class, 0, sum}};
  std::int64_t time_ps = 0;
  for (const Change& change : changes_) {
    sum += change.bytes;
    time_ps = std::max(time_ps, TimeOf(change, times));
    if (counters.back().time_ps != time_ps) counters.push_back({rank_class, time_ps, sum});
    counters.back().bytes = sum;
  }
  return counters;
}

int CountCommunicators(const plan::Program& program, base::Rank rank) {
  const plan::Role& role = program.role(rank);
  std::set<std::vector<base::Rank>> carrying;  // communicators over the same ranks count once
  bool p2p = false;
  const auto add = [&](const plan::GroupRef& group) {
    std::vector<base::Rank> members = program.Members(rank, group);
    if (members.size() > 1) carrying.insert(std::move(members));
  };
  std::set<std::uint32_t> seen;
  for (const plan::Op& op : role.ops) {
    p2p = p2p || op.kind == plan::OpKind::kP2P;
    if (op.group == plan::kNone32 || op.purpose == plan::Purpose::kScalars) continue;
    const plan::GroupRef& group = role.groups[op.group];
    if (!seen.insert(op.group).second) continue;
    if (op.kind != plan::OpKind::kCompute) {
      add(group);
      continue;
    }
    // A block is matched over all its inner axes together; each axis is a communicator.
    for (const plan::AxisSet axis : {plan::kTp, plan::kCp, plan::kEp}) {
      if ((group.axes.bits() & axis.bits()) == 0) continue;
      add({.kind = plan::GroupRef::Kind::kAxes, .module = group.module, .axes = axis});
    }
  }
  return static_cast<int>(carrying.size()) + (p2p ? 1 : 0);
}

std::vector<RankMemory> PredictMemory(const plan::Program& program, const MemoryFacts& facts) {
  // Ranks of a role count their communicators alike: group sizes follow from the grid.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  std::vector<RankMemory> kinds;
  for (std::int32_t index = 0; index < program.num_ranks; ++index) {
    const base::Rank rank{index};
    const auto [at, is_new] = known.try_emplace(
        {program.role_of_rank[rank.index()], program.table_of_rank[rank.index()]}, kinds.size());
    if (is_new) {
      const Ledger ledger(program, program.role(rank), program.table(rank));
      kinds.push_back({.ranks = {}, .peak = ledger.Peak(facts, CountCommunicators(program, rank))});
      kinds.back().peak.rank_class = static_cast<std::uint32_t>(kinds.size() - 1);
    }
    kinds[at->second].ranks.push_back(rank);
  }
  return kinds;
}

}  // namespace isthmus::sim
