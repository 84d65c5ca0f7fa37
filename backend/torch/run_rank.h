#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/launch/rank_environment.h"
#include "backend/torch/training_options.h"
#include "base/ids.h"
#include "plan/program/program.h"

/// One rank of a program on real tensors: what the executable isthmus-rank calls. Shows no torch.
namespace isthmus::backend {

/// Where samples come from; all are functions of the seed and the sample's number.
enum class DataSource : std::uint8_t {
  kCaptions,  // drawn shapes (and tones) with captions: can be learnt
  kRandom,    // random tokens and patches
};

/// Where tensors live and what carries messages: Gloo or NCCL.
enum class DeviceKind : std::uint8_t { kCpu, kGpu };

/// Facts for the header of the trace that a run itself doesn't know.
struct TraceFacts {
  std::string scenario_name;
  std::string scenario_hash;
  std::string commit;
};

/// A step as rank 0 tells it.
struct StepProgress {
  std::int64_t step = 0;  // from 1, counted through all runs that a checkpoint links
  double loss = 0.0;      // mean over the world's valid tokens
  double step_s = 0.0;
  double tokens_per_s = 0.0;   // of the whole job: LLM tokens, padding included
  double gradient_norm = 0.0;  // before clipping; 0 where the program takes no norm
  double loss_scale = 1.0;
  bool skipped = false;           // infinities were found: nothing was updated
  std::int64_t memory_bytes = 0;  // most that the tensors of rank 0's values took so far
};

struct RankRunOptions {
  RankEnvironment environment;
  DeviceKind device = DeviceKind::kCpu;
  int num_threads = 1;                        // of torch within the rank
  std::chrono::milliseconds timeout{60'000};  // of every wait for other ranks
  std::int64_t num_steps = 10;
  /// Steps at the beginning that no figure counts; fewer where the run has no more.
  std::int64_t num_warmup_steps = 2;
  TrainingOptions training;
  DataSource data = DataSource::kCaptions;
  std::string trace_path;  // rank 0 writes the measured trace there; empty: none is recorded
  TraceFacts facts;
  std::string checkpoint_folder;         // written at the end of the run; empty: none
  std::int64_t checkpoint_interval = 0;  // steps after which it is written too; 0: at the end only
  std::string resume_folder;             // read before the first step; empty: from scratch
  /// Called on rank 0 after every step, from the rank's thread.
  std::function<void(const StepProgress& progress)> on_step = {};
};

/// What came of a run. Equal on all ranks but for the memory.
struct RankOutcome {
  std::vector<StepProgress> steps;  // rank 0; others: empty
  double median_step_s = 0.0;       // after the warm-up; rank 0
  std::int64_t memory_bytes = 0;    // most that the tensors of this rank's values took
};

/// Runs `options.num_steps` optimizer steps of `program` (planned for one step) as `rank`.
///
/// All ranks of the program must call it, each in a process of its own. Before any group is made
/// they compare versions of isthmus and torch, program, and training options. Throws base::Error
/// where ranks contradict each other or the program can't be run (backward absent, fp8), and
/// base::IoError, naming the op that each rank was in, where a rank is gone, the port is taken, a
/// file can't be written, or a wait lasts longer than `options.timeout`.
RankOutcome RunRank(const plan::Program& program, base::Rank rank, const RankRunOptions& options);

}  // namespace isthmus::backend
