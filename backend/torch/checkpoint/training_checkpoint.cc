#include "backend/torch/checkpoint/training_checkpoint.h"

#include "backend/torch/checkpoint/checkpoint.h"
#include "backend/torch/checkpoint/training_parts.h"

namespace isthmus::backend {
namespace {

void Append(std::vector<StoredPart>& parts, std::vector<StoredPart> more) {
  parts.insert(parts.end(), more.begin(), more.end());
}

CheckpointFacts FactsOf(const TrainingIdentity& identity) {
  return {.seed = identity.seed,
          .model = HashOfModel(identity.program),
          .scenario_hash = identity.scenario_hash};
}

}  // namespace

void SaveTraining(const std::filesystem::path& folder, const TrainingIdentity& identity,
                  std::int64_t step, Executor& executor, Communicators& communicators) {
  CheckpointFacts facts = FactsOf(identity);
  facts.step = step;
  facts.updates = executor.num_updates();
  facts.loss_scale = executor.loss_scaler().scale();
  facts.steps_without_overflow = executor.loss_scaler().num_good_steps();
  std::vector<StoredPart> parts;
  for (const std::uint16_t module : executor.modules()) {
    Append(parts, OwnedParts(executor.ParametersOf(module)));
    Append(parts, FrozenWeights(executor.ParametersOf(module)));
  }
  WriteCheckpoint(folder, facts, parts, communicators.control());
}

std::int64_t ResumeTraining(const std::filesystem::path& folder, const TrainingIdentity& identity,
                            Executor& executor, Communicators& communicators) {
  std::vector<StoredPart> parts;
  for (const std::uint16_t module : executor.modules()) {
    // Masters behind working weights: where they are one tensor, the values are the same.
    Append(parts, WorkingWeights(executor.ParametersOf(module)));
    Append(parts, OwnedParts(executor.ParametersOf(module)));
  }
  const CheckpointFacts facts =
      ReadCheckpoint(folder, FactsOf(identity), parts, communicators.control());
  executor.set_num_updates(facts.updates);
  executor.loss_scaler().Restore(facts.loss_scale, facts.steps_without_overflow);
  return facts.step;
}

}  // namespace isthmus::backend
