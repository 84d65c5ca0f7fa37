#include "scenarios/internal/fields.h"

namespace isthmus::scenarios::internal {
namespace {

using enum Presence;

constexpr IntegerRange kSteps = {0, 1'000'000'000};
constexpr double kMaxRate = 1'000.0;
// Below one by what a double holds of it: the mean would never change.
constexpr double kMaxBeta = 0.9999999;

void LearningRateFields(Archive& archive, Training& training) {
  archive.Value("learning_rate", Real(training.learning_rate, 0.0, kMaxRate), kOptional,
                "after the warm-up");
  archive.Value("min_learning_rate", Real(training.min_learning_rate, 0.0, kMaxRate), kOptional,
                "linear, cosine: where the rate ends");
  archive.Value("warmup_steps", Integer(training.warmup_steps, kSteps), kOptional,
                "steps in which the rate grows linearly from 0");
  archive.Value("schedule",
                OneOf(training.schedule, {Means("constant", LearningRateSchedule::kConstant),
                                          Means("linear", LearningRateSchedule::kLinear),
                                          Means("cosine", LearningRateSchedule::kCosine)}),
                kOptional,
                "the rate after the warm-up: stays, or falls on a line or half a cosine");
  archive.Value("decay_steps", Integer(training.decay_steps, kSteps), kOptional,
                "linear, cosine: the step from which on the rate is min_learning_rate");
}

}  // namespace

void Fields(Archive& archive, LossScale& scale) {
  archive.Value("initial", Real(scale.initial, 1.0, 1e30), kOptional, "factor on the first loss");
  archive.Value("growth_factor", Real(scale.growth_factor, 1.0, 1'024.0), kOptional,
                "on the scale, after growth_interval steps without an overflow");
  archive.Value("backoff_factor", Real(scale.backoff_factor, 1e-6, 1.0), kOptional,
                "on the scale, after a step with an overflow, which is left out");
  archive.Value("growth_interval", Integer(scale.growth_interval, {1, kSteps.max}), kOptional,
                "steps");
}

void Fields(Archive& archive, Training& training) {
  LearningRateFields(archive, training);
  archive.Values(
      "betas", training.betas.size(),
      [&training](std::size_t size) { training.betas.resize(size); },
      [&training](std::size_t index) { return Real(training.betas[index], 0.0, kMaxBeta); },
      "Adam's decay of the mean and of the mean square; absent: [0.9, 0.95]");
  archive.Value("epsilon", Real(training.epsilon, 0.0, 1.0), kOptional, "Adam's");
  archive.Value("weight_decay", Real(training.weight_decay, 0.0, 1.0), kOptional,
                "decoupled from the gradient, as in AdamW");
  archive.Value("clip_norm", Real(training.clip_norm, 0.0, 1e30), kOptional,
                "bound of the norm over all gradients; absent, or 0: none where "
                "optimizer.clip_gradients is false");
  archive.Value("initial_std", Real(training.initial_std, 0.0, 10.0), kOptional,
                "standard deviation of initial weights");
  StructField(archive, "loss_scale", training.loss_scale, "of modules in fp16");
  archive.Struct(
      "data",
      [&training](Archive& inner) {
        inner.Value(
            "task",
            OneOf(training.task, {Means("random", TrainingTask::kRandom),
                                  Means("captions", TrainingTask::kCaptions)}),
            kOptional,
            "random: nothing to learn; captions: drawn shapes and tones, and words for them");
      },
      nullptr, "what is trained on, drawn from `seed`");
}

}  // namespace isthmus::scenarios::internal
