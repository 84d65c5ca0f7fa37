#include "sim/memory/ledger.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "plan/program/print.h"

namespace isthmus::sim {

MemoryFacts ReadMemoryFacts(const profiles::Profile& profile) {
  return {.workspace_bytes = profile.Size("ledger.workspace").value(),
          .context_bytes = profile.Size("ledger.cuda_context").value(),
          .nccl_bytes_per_communicator = profile.Size("ledger.nccl_per_communicator").value(),
          .fragmentation = profile.Number("ledger.fragmentation"),
          .capacity_bytes = profile.Size("device.usable_memory").value(),
          .verdict_margin = profile.Number("ledger.verdict_margin")};
}

Ledger::Ledger(const plan::Program& program, const Variant& variant, const ClassTimes& times)
    : program_(program), variant_(variant), role_(*variant.ops), times_(times) {
  AddStorages();
  AddTransients();
  std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return a.time_ps != b.time_ps ? a.time_ps < b.time_ps : (a.bytes < 0) > (b.bytes < 0);
  });
}

std::int64_t Ledger::SizeOf(const plan::Storage& storage) const {
  return storage.size == plan::kNone32
             ? 0
             : program_.tables[variant_.table].bytes[storage.size].value();
}

/// A P2P op holds what it sends until its last transfer is over.
std::int64_t Ledger::EndOf(std::uint32_t index) const {
  const plan::Op& op = role_.ops[index];
  std::int64_t end = times_.end_ps[index];
  for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
    end = std::max(end, times_.transfer_end_ps[at]);
  }
  return end;
}

bool Ledger::Sends(const plan::Op& op, plan::ValueId value) const {
  const auto transfers = role_.transfers_of(op);
  return std::any_of(transfers.begin(), transfers.end(), [&](const plan::Transfer& transfer) {
    return transfer.sends && transfer.value == value;
  });
}

std::vector<Ledger::Life> Ledger::LivesOf() const {
  std::vector<Life> lives(role_.storages.size());
  const auto touch = [&](plan::ValueId value, std::int64_t begin, std::int64_t end,
                         std::uint32_t op) {
    Life& life = lives[role_.values[value].storage];
    if (life.begin_ps < 0) {
      life.begin_ps = begin;
      life.op = op;
    }
    life.end_ps = std::max(life.end_ps, end);
  };
  for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
    const plan::Op& op = role_.ops[index];
    const std::int64_t start = times_.start_ps[index];
    const std::int64_t end = EndOf(index);
    for (const plan::ValueId value : role_.produced_by(op)) touch(value, start, end, index);
    for (const plan::ValueId value : role_.consumed_by(op)) {
      // What a P2P op only waits for it does not hold.
      const bool holds = op.kind != plan::OpKind::kP2P || Sends(op, value);
      touch(value, start, holds ? end : times_.end_ps[index], index);
    }
  }
  // A view keeps what it looks into.
  for (plan::StorageId storage = 0; storage < role_.storages.size(); ++storage) {
    const plan::StorageId pinned = role_.storages[storage].pins;
    if (pinned != plan::kNone32)
      lives[pinned].end_ps = std::max(lives[pinned].end_ps, lives[storage].end_ps);
  }
  return lives;
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
    if (op.copy() == plan::CopyDirection::kToHost) {
      changes_.push_back({times_.end_ps[index], -bytes, index, category});
    } else {
      changes_.push_back({times_.start_ps[index], bytes, index, category});
    }
  }
}

void Ledger::AddStorages() {
  const std::vector<Life> lives = LivesOf();
  for (plan::StorageId storage = 0; storage < role_.storages.size(); ++storage) {
    const plan::Storage& what = role_.storages[storage];
    const std::int64_t bytes = SizeOf(what);
    if (bytes == 0) continue;
    if (what.persistent) {
      AddPersistent(storage, bytes, what.category);
    } else if (lives[storage].begin_ps >= 0) {
      changes_.push_back({lives[storage].begin_ps, bytes, lives[storage].op, what.category});
      changes_.push_back({lives[storage].end_ps, -bytes, lives[storage].op, what.category});
    }
  }
}

void Ledger::AddTransients() {
  for (std::uint32_t index = 0; index < role_.ops.size(); ++index) {
    const plan::Op& op = role_.ops[index];
    if (op.kind != plan::OpKind::kCompute && op.kind != plan::OpKind::kOptimizer) continue;
    const std::int64_t bytes =
        program_.works[program_.tables[variant_.table].works[op.size]].transient_bytes.value();
    if (bytes == 0) continue;
    changes_.push_back({times_.start_ps[index], bytes, index, plan::MemoryCategory::kTransient});
    changes_.push_back({times_.end_ps[index], -bytes, index, plan::MemoryCategory::kTransient});
  }
}

traces::MemoryPeak Ledger::Peak(const MemoryFacts& facts, int num_communicators) const {
  Bytes live = persistent_;
  std::int64_t sum = 0;
  for (const std::int64_t bytes : live) sum += bytes;
  Bytes at_peak = live;
  traces::MemoryPeak peak{.peak_bytes = sum, .moment = "between steps"};
  const Change* moment = nullptr;
  for (std::size_t index = 0; index < changes_.size(); ++index) {
    const Change& change = changes_[index];
    live[static_cast<std::size_t>(change.category)] += change.bytes;
    sum += change.bytes;
    // Only what stands at the end of an instant counts: ops of no length leave no trace.
    if (index + 1 < changes_.size() && changes_[index + 1].time_ps == change.time_ps) continue;
    if (sum <= peak.peak_bytes) continue;
    peak.peak_bytes = sum;
    peak.time_ps = change.time_ps;
    at_peak = live;
    moment = &change;
  }
  if (moment != nullptr) peak.moment = plan::Describe(program_, role_, role_.ops[moment->op]);
  peak.peak_bytes += facts.workspace_bytes;
  for (std::size_t category = 0; category < at_peak.size(); ++category) {
    if (at_peak[category] == 0) continue;
    peak.categories[plan::ToText(static_cast<plan::MemoryCategory>(category))] = at_peak[category];
  }
  const auto slack = std::llround(facts.fragmentation * static_cast<double>(peak.peak_bytes));
  peak.categories["workspace"] += facts.workspace_bytes;
  peak.categories["allocator_slack"] = slack;
  peak.categories["cuda_context"] = facts.context_bytes;
  peak.categories["nccl"] = facts.nccl_bytes_per_communicator * num_communicators;
  peak.device_bytes = peak.peak_bytes + slack + facts.context_bytes + peak.categories["nccl"];
  peak.capacity_bytes = facts.capacity_bytes;
  const auto device = static_cast<double>(peak.device_bytes);
  const auto capacity = static_cast<double>(peak.capacity_bytes);
  peak.verdict = device * (1 + facts.verdict_margin) < capacity   ? "fits"
                 : device * (1 - facts.verdict_margin) > capacity ? "does_not_fit"
                                                                  : "borderline";
  return peak;
}

std::vector<traces::MemoryCounter> Ledger::Counters(std::uint32_t rank_class,
                                                    const MemoryFacts& facts) const {
  std::int64_t sum = facts.workspace_bytes;
  for (const std::int64_t bytes : persistent_) sum += bytes;
  std::vector<traces::MemoryCounter> counters{{rank_class, 0, sum}};
  for (const Change& change : changes_) {
    sum += change.bytes;
    if (counters.back().time_ps != change.time_ps)
      counters.push_back({rank_class, change.time_ps, sum});
    counters.back().bytes = sum;
  }
  return counters;
}

int CountCommunicators(const plan::Role& role, const LoweredClass& rank_class,
                       const Lowered& lowered) {
  const plan::Program& program = *lowered.program;
  std::set<std::vector<base::Rank>> carrying;  // communicators over the same ranks count once
  bool p2p = false;
  const auto add = [&](const plan::GroupRef& group) {
    std::vector<base::Rank> members = program.Members(rank_class.representative, group);
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

}  // namespace isthmus::sim
