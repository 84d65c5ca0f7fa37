#pragma once

#include <cstdint>
#include <vector>

#include "plan/job.h"
#include "plan/model/layers.h"
#include "plan/program/block_span.h"

namespace isthmus::plan {

/// A unit of autograd on the backward side: consecutive units of a chunk with equal flags.
struct BackwardBlock {
  Block block;
  int first_layer = 0;
  bool recomputed = false;
  bool needs_input_gradient = true;
  bool needs_weight_gradient = true;
  bool active = true;  // false: nothing before or in it is trained, its backward does not run
  std::vector<int> parameters;  // storages (buckets, then the frozen one) it reads
  std::vector<int> finishes;    // buckets whose last gradient it computes
};

/// What one forward Compute op spans; its backward runs as one or more BackwardBlocks (more than
/// one where layers are recomputed one at a time).
struct ForwardBlock {
  Block block;
  int first_layer = 0;
  std::vector<int> parameters;
  std::vector<BackwardBlock> backward;  // in forward order
};

/// How the layers that one rank holds of a module are cut into ops and buckets.
struct StagePlan {
  int first_layer = 0;
  std::vector<ForwardBlock> plain;     // by schedule.block
  std::vector<ForwardBlock> bucketed;  // cut at bucket borders too: first and last microbatch
  std::vector<Bucket> buckets;         // trained parameters, first layers first
  std::int64_t frozen_parameters = 0;
  std::int64_t trained_parameters = 0;
  std::int64_t replicated_parameters = 0;  // trained, replicated over tp (norms)
  Block whole;
  /// Index of the storage of frozen parameters: behind the buckets. Needs frozen_parameters > 0.
  int frozen_storage() const { return static_cast<int>(buckets.size()); }
};

/// What the plan of a stage depends on.
struct StageRequest {
  const Module* module = nullptr;
  int first_layer = 0;
  Block block;                           // all units of the stage
  bool trained_upstream = false;         // a module (or projector) in front of this one is trained
  const Projector* projector = nullptr;  // of this block's projector, null without
  std::int64_t projector_in = 0;
  std::int64_t projector_out = 0;
  int tp = 1;
  int block_layers = 0;
  bool head_apart = false;             // the head's backward is a block of its own
  std::int64_t bucket_parameters = 0;  // 0: everything in one bucket
  /// Stem and head share tied embeddings with another stage: they get buckets of their own, which
  /// wait for that stage's gradients while the others are reduced, as Megatron has it.
  bool shares_embedding = false;
};

StagePlan PlanStage(const StageRequest& request);

}  // namespace isthmus::plan
