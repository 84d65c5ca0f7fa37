#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/model/kernel.h"

/// Sums over the pieces of a Work, every part counted as often as it repeats.
namespace isthmus::tests {

template <typename Visit>
void ForEachSegment(const plan::Work& work, const Visit& visit) {
  for (const plan::RepeatedSegments& part : work.parts) {
    for (const plan::Segment& segment : part.segments) visit(segment, part.count);
  }
}

inline double GemmFlops(const plan::Work& work) {
  double flops = 0;
  ForEachSegment(work, [&](const plan::Segment& segment, int count) {
    for (const plan::Kernel& kernel : segment.kernels) {
      if (const auto* gemm = std::get_if<plan::Gemm>(&kernel)) {
        flops += count * plan::FlopsOf(*gemm).value();
      }
    }
  });
  return flops;
}

inline double AttentionFlops(const plan::Work& work) {
  return plan::ExecutedFlops(work).value() - GemmFlops(work);
}

inline std::int64_t MovedBytes(const plan::Work& work, plan::MemoryClass memory_class) {
  std::int64_t bytes = 0;
  ForEachSegment(work, [&](const plan::Segment& segment, int count) {
    for (const plan::Kernel& kernel : segment.kernels) {
      const auto* bound = std::get_if<plan::MemoryBound>(&kernel);
      if (bound != nullptr && bound->memory_class == memory_class) {
        bytes += count * bound->bytes.value();
      }
    }
  });
  return bytes;
}

/// Kernels that are launched.
inline int NumKernels(const plan::Work& work) {
  int launches = 0;
  ForEachSegment(work, [&](const plan::Segment& segment, int count) {
    for (const plan::Kernel& kernel : segment.kernels) {
      const auto* bound = std::get_if<plan::MemoryBound>(&kernel);
      launches += count * (bound != nullptr ? bound->launches : 1);
    }
  });
  return launches;
}

/// Collectives of a kind and overlap.
inline int NumCollectives(const plan::Work& work, plan::CollectiveKind kind,
                          plan::Overlap overlap) {
  int found = 0;
  ForEachSegment(work, [&](const plan::Segment& segment, int count) {
    if (segment.collective && segment.collective->kind == kind && segment.overlap == overlap) {
      found += count;
    }
  });
  return found;
}

inline std::vector<std::string> SegmentNames(const plan::Work& work) {
  std::vector<std::string> names;
  ForEachSegment(work,
                 [&](const plan::Segment& segment, int) { names.emplace_back(segment.name); });
  return names;
}

}  // namespace isthmus::tests
