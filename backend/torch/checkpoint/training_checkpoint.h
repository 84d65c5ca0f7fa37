#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "backend/torch/comm/communicators.h"
#include "backend/torch/execute/executor.h"
#include "plan/program/program.h"

/// Checkpoints of a training that an Executor runs.
namespace isthmus::backend {

/// Who trains: what a checkpoint has to fit.
struct TrainingIdentity {
  const plan::Program& program;
  std::uint64_t seed = 0;
  std::string scenario_hash{};  // for people
};

/// Writes weights, optimizer state and positions after `step` steps; every rank calls it. Errors as
/// WriteCheckpoint() has them.
void SaveTraining(const std::filesystem::path& folder, const TrainingIdentity& identity,
                  std::int64_t step, Executor& executor, Communicators& communicators);

/// Puts the executor where a training of the same model and seed was, on whatever layout it ran,
/// and returns the number of steps it had done; every rank calls it. Errors as ReadCheckpoint() has
/// them.
std::int64_t ResumeTraining(const std::filesystem::path& folder, const TrainingIdentity& identity,
                            Executor& executor, Communicators& communicators);

}  // namespace isthmus::backend
