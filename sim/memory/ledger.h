#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "sim/engine/engine.h"
#include "sim/engine/lowered.h"
#include "traces/trace.h"

namespace isthmus::sim {

/// Memory that is no tensor of the model, and the limit.
struct MemoryFacts {
  std::int64_t workspace_bytes = 0;
  std::int64_t context_bytes = 0;
  std::int64_t nccl_bytes_per_communicator = 0;
  double fragmentation = 0;  // allocator slack, share of allocated bytes
  std::int64_t capacity_bytes = 0;
  double verdict_margin = 0;  // relative half width of "borderline"
};
MemoryFacts ReadMemoryFacts(const profiles::Profile& profile);

/// Replays the values of a class in the times of its ops: what is live when, the peak, what it is
/// made of.
///
/// A storage is live from the start of the op that produces its first version to the end of the
/// last op that consumes or produces any version (a send: to the end of its transfer); persistent
/// storage is live throughout, but for the time between the end of a Copy to the host and the start
/// of the Copy back. An op's transient bytes are live while it runs. At equal times releases come
/// first. Cost: O(n log n) in the ops and values of the class.
class Ledger {
 public:
  Ledger(const plan::Program& program, const Variant& variant, const ClassTimes& times);

  /// Peak over the whole run, as allocated by tensors and workspace.
  traces::MemoryPeak Peak(const MemoryFacts& facts, int num_communicators) const;
  /// Every change of the sum, for counters; `rank_class` is copied into each.
  std::vector<traces::MemoryCounter> Counters(std::uint32_t rank_class,
                                              const MemoryFacts& facts) const;

 private:
  using Bytes = std::array<std::int64_t, plan::kNumMemoryCategories>;
  struct Change {
    std::int64_t time_ps = 0;
    std::int64_t bytes = 0;  // negative: released
    std::uint32_t op = 0;    // what runs there, to name the moment
    plan::MemoryCategory category = plan::MemoryCategory::kActivations;
  };
  struct Life {
    std::int64_t begin_ps = -1;
    std::int64_t end_ps = -1;
    std::uint32_t op = 0;
  };

  std::vector<Life> LivesOf() const;
  void AddStorages();
  void AddPersistent(plan::StorageId storage, std::int64_t bytes, plan::MemoryCategory category);
  void AddTransients();
  std::int64_t SizeOf(const plan::Storage& storage) const;
  std::int64_t EndOf(std::uint32_t index) const;
  bool Sends(const plan::Op& op, plan::ValueId value) const;

  const plan::Program& program_;
  const Variant& variant_;
  const plan::Role& role_;
  const ClassTimes& times_;
  Bytes persistent_{};           // live at the start
  std::vector<Change> changes_;  // in order
};

/// Communicators of a class that hold NCCL buffers: those that carry tensors, and one for P2P.
int CountCommunicators(const plan::Role& role, const LoweredClass& rank_class,
                       const Lowered& lowered);

}  // namespace isthmus::sim
