#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/torch/comm/communicators.h"
#include "backend/torch/execute/executor.h"
#include "backend/torch/training_options.h"
#include "plan/job.h"

/// Runs a job on thread-ranks beside the reference on one process and says how far they are apart.
namespace isthmus::tests {

struct ParityRun {
  plan::Job job;
  backend::TrainingOptions training;
  std::string task = "captions";
  int num_steps = 20;
  /// Makes a rank's backends; empty: Gloo.
  std::function<std::unique_ptr<backend::BackendFactory>(base::Rank)> factory = {};
  /// Called on a rank's thread before each op.
  std::function<void(const plan::Role& role, base::Rank rank, std::uint32_t op)> before_op = {};
};

/// Relative to the reference, the worst of all tensors and ranks after one step: |a - b| / |b| of
/// scalars, |a - b|₂ / |b|₂ of tensors. A tensor that is zero in the reference (positions that no
/// token has) has to be zero on the ranks; what isn't counts as 1.
struct StepDistance {
  double loss = 0.0;
  double norm = 0.0;  // of all gradients; 0 where the job doesn't clip
  double gradient = 0.0;
  double weight = 0.0;
  double first_moment = 0.0;
  double second_moment = 0.0;
  double worst() const;
};

struct ParityOutcome {
  std::vector<StepDistance> steps;
  std::vector<double> losses;  // of the ranks
  /// Working weights of all ranks after the last step and a gather, against the reference.
  double gathered_weight = 0.0;
  /// Parameters of the reference that no rank had, or not all of.
  std::vector<std::string> missing;
  StepDistance worst() const;
};

/// Small training options: Adam with ε 1e-6, as the tolerances ask for.
backend::TrainingOptions ParityTraining();

/// Ranks in the precision of the job's modules; reference in `reference_type`.
ParityOutcome RunParity(const ParityRun& run, at::ScalarType reference_type);

/// Losses alone of `num_steps` steps on thread-ranks.
std::vector<double> LossesOf(const ParityRun& run);

/// Runs `body` on thread-ranks of the job, each with an executor that has run no step; `num_steps`
/// is not looked at.
void RunExecutors(const ParityRun& run,
                  const std::function<void(const plan::Program& program, base::Rank rank,
                                           backend::Executor& executor,
                                           backend::Communicators& communicators)>& body);

}  // namespace isthmus::tests
