#include <fmt/format.h>

#include "scenarios/internal/resolve.h"

namespace isthmus::scenarios::internal {
namespace {

// The norm is computed and used by planned ops, so plan and bound must agree.
void ResolveClip(Resolution& resolution) {
  Training& training = resolution.spec.training;
  const bool is_planned = resolution.spec.optimizer.clip_gradients;
  const char* key = "training.clip_norm";
  if (!is_planned && !resolution.is_given(key)) {
    training.clip_norm = 0.0;
    resolution.derived.insert(key);
  } else if (!is_planned && training.clip_norm > 0.0) {
    resolution.Complain(
        key, fmt::format("{} needs `optimizer.clip_gradients: true`", training.clip_norm));
  } else if (is_planned && training.clip_norm == 0.0) {
    resolution.Complain(key, "0 leaves nothing to do for the clip that is planned",
                        "set `optimizer.clip_gradients: false`");
  }
}

void CheckDecay(Resolution& resolution) {
  const Training& training = resolution.spec.training;
  const bool falls = training.schedule != LearningRateSchedule::kConstant;
  const char* key = "training.decay_steps";
  if (!falls && training.decay_steps > 0) {
    resolution.Complain(key, "a constant rate falls at no step", "set `schedule: cosine`");
  } else if (falls && training.decay_steps == 0) {
    resolution.Complain(key, "is missing: the step at which the rate has fallen");
  } else if (falls && training.decay_steps <= training.warmup_steps) {
    resolution.Complain(key, fmt::format("{} is not after the warm-up of {} steps",
                                         training.decay_steps, training.warmup_steps));
  }
}

}  // namespace

void ResolveTraining(Resolution& resolution) {
  if (!resolution.is_sound("training") || !resolution.is_sound("optimizer")) return;
  const Training& training = resolution.spec.training;
  if (training.betas.size() != 2) {
    resolution.Complain("training.betas", "needs two numbers", "as in [0.9, 0.95]");
  }
  if (training.min_learning_rate > training.learning_rate) {
    resolution.Complain("training.min_learning_rate",
                        fmt::format("{} is above learning_rate {}", training.min_learning_rate,
                                    training.learning_rate));
  }
  CheckDecay(resolution);
  ResolveClip(resolution);
}

}  // namespace isthmus::scenarios::internal
