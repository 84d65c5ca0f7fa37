#pragma once

#include <cstdint>

#include "plan/job.h"
#include "profiles/profile.h"
#include "traces/trace.h"

namespace isthmus::sim {

/// Memory that is no tensor of the model, and the limit.
///
/// Three figures follow from tensors and workspace (`allocated`), modelling_memory §5:
///   reserved = allocated · factor + constant       what the caching allocator holds
///   device   = reserved + CUDA context + NCCL      what nvidia-smi shows
/// On a host nothing is reserved: device = allocated + the process itself. Ranks that share a
/// device have an equal part of its capacity each.
struct MemoryFacts {
  std::int64_t workspace_bytes = 0;
  double reserved_factor = 1;
  std::int64_t reserved_constant_bytes = 0;
  std::int64_t context_bytes = 0;
  std::int64_t process_bytes = 0;  // hosts: program, libraries, Gloo
  std::int64_t nccl_bytes_per_communicator = 0;
  std::int64_t capacity_bytes = 0;
  double verdict_margin = 0;  // relative half width of "borderline"
};
/// Throws base::Error when the profile lacks one of `ledger.*` or device.usable_memory.
MemoryFacts ReadMemoryFacts(const profiles::Profile& profile, plan::Allocator allocator);

/// Completes a peak whose peak_bytes and categories are those of the tensors: workspace, the three
/// figures, what is no tensor as categories of its own, and the verdict on the device's figure d:
/// fits when d·(1 + margin) < capacity, does_not_fit when d·(1 - margin) > capacity, else
/// borderline.
void AddWhatIsNoTensor(const MemoryFacts& facts, int num_communicators, traces::MemoryPeak& peak);

}  // namespace isthmus::sim
