#pragma once

#include <cstdint>
#include <vector>

#include "plan/build/stage_plan.h"
#include "plan/model/layers.h"

/// Bytes of what the ops of one chunk take and give back, without the ops.
namespace isthmus::sim {

/// A unit of autograd of a chunk.
struct UnitSizes {
  std::int64_t saved = 0;    // context, or checkpoint where it is recomputed
  std::int64_t rebuilt = 0;  // context of a recomputed layer
  std::int64_t logits = 0;
  std::int64_t gradient = 0;  // of the unit's output
  plan::Transient recompute;
  plan::Transient backward;
};

/// What one forward op spans.
struct BlockSizes {
  std::int64_t output = 0;  // 0: ends in the loss
  plan::Transient forward;
  std::vector<UnitSizes> units;
};

struct ChunkSizes {
  std::vector<BlockSizes> plain;
  std::vector<BlockSizes> bucketed;
  std::int64_t input = 0;
  std::int64_t output = 0;
};

/// `shape` is that of the rank: tokens, degrees, module.
ChunkSizes SizesOf(plan::BlockShape shape, const plan::StagePlan& plan);

}  // namespace isthmus::sim
