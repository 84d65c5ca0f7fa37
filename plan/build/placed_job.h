#pragma once

#include <vector>

#include "plan/boundary/boundary.h"
#include "plan/build/stage_plan.h"
#include "plan/job.h"
#include "plan/layout/grid.h"
#include "plan/model/sample_spans.h"
#include "plan/program/program.h"

namespace isthmus::plan {

/// A job with its modules laid over ranks: grids, layer splits, stage plans, boundaries. What the
/// emitters read; made once per program.
struct PlacedJob {
  const Job* job = nullptr;
  std::vector<PlacedModule> modules;
  std::vector<std::vector<StagePlan>> stages;  // by module and virtual stage (chunk · pp + stage)
  std::vector<Boundary> boundaries;            // by edge
  std::vector<SampleSpans> spans;              // by edge: of the encoder, in tokens at the LLM
  std::vector<std::vector<int>> warmup;        // by module and stage: depth of the graph-aware 1F1B

  /// Pipeline stages, of which each rank has one; its chunks are virtual ones.
  int num_stages(int module) const {
    return modules[static_cast<std::size_t>(module)].grid.size(Axis::kPp);
  }
  /// Whether any stage of the module has trained parameters (a projector's count where it runs).
  bool is_trained(int module) const;
  /// Whether a gradient crosses from a virtual stage to the one (or the module) in front of it.
  bool needs_input_gradient(int module, int virtual_stage) const;
  /// Whether the encoder on `edge`, or its projector there, is trained, so that its gradient is
  /// sent.
  bool edge_has_gradient(int edge) const;
  /// Whether what crosses `edge` in a microbatch differs by microbatch.
  bool microbatches_differ(int edge) const;
};

PlacedJob Place(const Job& job);

/// What the ops of a module's microbatches on `rank` depend on: one shape where they are alike
/// (colocated encoders: of the window), else by microbatch.
std::vector<BlockShape> ShapesOnRank(const PlacedJob& placed, int module, base::Rank rank);

}  // namespace isthmus::plan
