#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "backend/launch/rank_environment.h"
#include "backend/torch/run_rank.h"
#include "traces/measured_row.h"

/// What a machine takes for the kernels and messages that ranks run: for `isthmus calibrate`. Shows
/// no torch.
namespace isthmus::backend {

struct MeasureOptions {
  RankEnvironment environment;
  DeviceKind device = DeviceKind::kCpu;
  bool quick = false;  // a coarser grid, fewer samples
  std::chrono::milliseconds timeout{600'000};
};

/// Measures the machine that all ranks of `options.environment` are on, on a grid of its own.
///
/// All ranks call it, each in a process of its own, and nothing else should run.
///
/// On CPUs there should be no fewer ranks than the machine's cores. Rank 0 measures kernels alone
/// while the others wait without a core; then 1, 2 … all ranks compute at once; then neighbours
/// communicate in groups of 2, 4 … at once, over the communicators that runs use. Kernels are timed
/// by the processor time of their thread, so that being scheduled away doesn't count, and are the
/// half-sample mode of their samples; collectives and messages from the last member's begin to the
/// last one's end, and by the processor time of the process, and are medians.
///
/// On GPUs all ranks take the first one. Rank 0 measures it alone (MeasureDevice); then the ranks
/// communicate between their hosts' memory and, for what is held out, between tensors of the GPU.
///
/// Returns the rows on rank 0, nothing on the others; the row `versions` names in its point what
/// did the work. Throws base::IoError where a rank is gone, or there is no GPU. docs/calibrate.md
/// lists the tables. Takes about a minute, a third of it when quick; on a GPU two minutes.
std::vector<traces::MeasuredRow> MeasureMachine(const MeasureOptions& options);

}  // namespace isthmus::backend
