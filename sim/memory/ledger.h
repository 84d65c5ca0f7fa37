#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/program/program.h"
#include "sim/engine/engine.h"
#include "sim/memory/memory_facts.h"
#include "traces/trace.h"

namespace isthmus::sim {

/// What one rank holds, op by op in the order in which its host issues them: the peak, what it is
/// made of, and the moment it comes.
///
/// A caching allocator hands out and takes back memory as the host calls it, not as the device gets
/// there, so the order of the program decides and times don't: memory is known before anything is
/// simulated. A storage is live from the op that first touches it to the last that does;
/// persistent storage always, but between a Copy to the host and the Copy back. An op's transient
/// bytes are live while it is issued. Cost: O(ops + values).
class Ledger {
 public:
  Ledger(const plan::Program& program, const plan::Role& role, const plan::SizeTable& table);

  /// Peak over the whole run with what is no tensor; `times`, when there are any, say when it was.
  traces::MemoryPeak Peak(const MemoryFacts& facts, int num_communicators,
                          const ClassTimes* times = nullptr) const;
  /// Every change of the sum, for counters; `rank_class` is copied into each. A change takes place
  /// when its op starts (what it takes) or ends (what it gives back), but never before an earlier
  /// one.
  std::vector<traces::MemoryCounter> Counters(std::uint32_t rank_class, const MemoryFacts& facts,
                                              const ClassTimes& times) const;

 private:
  using Bytes = std::array<std::int64_t, plan::kNumMemoryCategories>;
  struct Change {
    std::uint32_t op = 0;
    std::int64_t bytes = 0;  // negative: given back, when the op is over
    plan::MemoryCategory category = plan::MemoryCategory::kActivations;
  };
  struct Life {
    std::uint32_t first = plan::kNone32;  // ops that touch it
    std::uint32_t last = 0;
  };

  bool Holds(const plan::Op& op, plan::ValueId consumed) const;
  std::vector<Life> LivesOf() const;
  void AddStorages();
  void AddPersistent(plan::StorageId storage, std::int64_t bytes, plan::MemoryCategory category);
  void AddTransients();
  void Take(std::uint32_t first, std::uint32_t last, std::int64_t bytes,
            plan::MemoryCategory category);
  const plan::Work* WorkOf(const plan::Op& op) const;
  std::string PhaseOf(const plan::Op& op) const;
  std::int64_t TimeOf(const Change& change, const ClassTimes& times) const;

  const plan::Program& program_;
  const plan::Role& role_;
  const plan::SizeTable& table_;
  Bytes persistent_{};           // live at the start
  std::vector<Change> changes_;  // by op, what it takes before what it gives back
};

/// Communicators of `rank` that hold NCCL buffers: those that carry tensors, and one for P2P.
int CountCommunicators(const plan::Program& program, base::Rank rank);

/// Ranks that hold the same: of one role with one table of sizes.
struct RankMemory {
  std::vector<base::Rank> ranks;  // ascending
  traces::MemoryPeak peak;
};
/// The peak of every kind of rank, without times. Cost: O(ranks + ops of the roles).
std::vector<RankMemory> PredictMemory(const plan::Program& program, const MemoryFacts& facts);

}  // namespace isthmus::sim
