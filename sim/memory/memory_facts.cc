#include "sim/memory/memory_facts.h"

#include <cmath>

namespace isthmus::sim {

MemoryFacts ReadMemoryFacts(const profiles::Profile& profile, plan::Allocator allocator) {
  // A process on a host has neither context nor caching allocator.
  if (profile.has("host.cores")) {
    return {.process_bytes = profile.Size("ledger.process").value(),
            .capacity_bytes = profile.Size("device.usable_memory").value(),
            .verdict_margin = profile.Number("ledger.verdict_margin")};
  }
  MemoryFacts facts{
      .workspace_bytes = profile.Size("ledger.workspace").value(),
      .context_bytes = profile.Size("ledger.cuda_context").value(),
      .nccl_bytes_per_communicator = profile.Size("ledger.nccl_per_communicator").value(),
      .capacity_bytes = profile.Size("device.usable_memory").value(),
      .verdict_margin = profile.Number("ledger.verdict_margin")};
  switch (allocator) {
    case plan::Allocator::kCaching:
      facts.reserved_factor = profile.Number("ledger.reserved.factor");
      facts.reserved_constant_bytes = profile.Size("ledger.reserved.constant").value();
      break;
    case plan::Allocator::kEagerStreams:
      facts.reserved_factor = profile.Number("ledger.reserved.eager_factor");
      break;
    case plan::Allocator::kExpandableSegments:
      break;
  }
  return facts;
}

void AddWhatIsNoTensor(const MemoryFacts& facts, int num_communicators, traces::MemoryPeak& peak) {
  peak.peak_bytes += facts.workspace_bytes;
  const auto allocated = static_cast<double>(peak.peak_bytes);
  const std::int64_t slack =
      std::llround((facts.reserved_factor - 1) * allocated) + facts.reserved_constant_bytes;
  peak.reserved_bytes = peak.peak_bytes + slack;
  peak.categories["workspace"] += facts.workspace_bytes;
  peak.categories["allocator_slack"] = slack;
  peak.categories["cuda_context"] = facts.context_bytes;
  peak.categories["nccl"] = facts.nccl_bytes_per_communicator * num_communicators;
  peak.device_bytes = peak.reserved_bytes + facts.context_bytes + peak.categories["nccl"];
  if (facts.process_bytes > 0) {
    peak.categories["process"] = facts.process_bytes;
    peak.device_bytes += facts.process_bytes;
  }
  peak.capacity_bytes = facts.capacity_bytes;
  const auto device = static_cast<double>(peak.device_bytes);
  const auto capacity = static_cast<double>(peak.capacity_bytes);
  peak.verdict = device * (1 + facts.verdict_margin) < capacity   ? "fits"
                 : device * (1 - facts.verdict_margin) > capacity ? "does_not_fit"
                                                                  : "borderline";
}

}  // namespace isthmus::sim
