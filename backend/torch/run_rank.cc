#include "backend/torch/run_rank.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "backend/torch/checkpoint/checkpoint.h"
#include "backend/torch/checkpoint/training_checkpoint.h"
#include "backend/torch/data/sample_batches.h"
#include "backend/torch/device/device.h"
#include "backend/torch/execute/executor.h"
#include "backend/torch/record/measured_trace.h"
#include "backend/torch/record/median_step.h"
#include "backend/torch/record/step_recorder.h"
#include "backend/torch/start/rank_store.h"
#include "base/error.h"
#include "base/hash.h"

namespace isthmus::backend {
namespace {

using Clock = std::chrono::steady_clock;

/// What has to be equal on all ranks, a line each.
std::string FactsOf(const plan::Program& program, const RankRunOptions& options) {
  const TrainingOptions& training = options.training;
  return fmt::format(
      "commit: {}\ntorch: {}\nprogram: {}\nsteps: {}\ntask: {}\nseed: {}\nlearning rate: {} to {} "
      "by {}, {} and {} steps\nadam: {} {} {} {}\nclip norm: {}\ninitial std: {}\nloss scale: {} "
      "{} "
      "{} {}\ncheckpoint: {} every {}\nresume: {}",
      options.facts.commit, TORCH_VERSION, base::HashText(plan::Hash(program)), options.num_steps,
      static_cast<int>(options.data), training.seed, training.learning_rate.peak,
      training.learning_rate.minimum, static_cast<int>(training.learning_rate.decay),
      training.learning_rate.warmup_steps, training.learning_rate.decay_steps, training.beta1,
      training.beta2, training.epsilon, training.weight_decay, training.clip_norm,
      training.initial_std, training.loss_scaling.initial_scale,
      training.loss_scaling.growth_factor, training.loss_scaling.backoff_factor,
      training.loss_scaling.growth_interval, options.checkpoint_folder, options.checkpoint_interval,
      options.resume_folder);
}

std::unique_ptr<BatchSource> MakeData(const plan::Program& program, const RankRunOptions& options) {
  const char* task = options.data == DataSource::kRandom ? "random" : "captions";
  return std::make_unique<SampleBatches>(
      program, MakeTask(task, ShapeOfSamples(program), {.seed = options.training.seed}));
}

StepProgress Progress(const plan::Program& program, const StepResult& result, double step_s) {
  const double tokens =
      static_cast<double>(program.workload.global_batch * program.workload.sequence_length);
  return {.loss = result.loss,
          .step_s = step_s,
          .tokens_per_s = step_s > 0.0 ? tokens / step_s : 0.0,
          .gradient_norm = result.gradient_norm,
          .loss_scale = result.loss_scale,
          .skipped = result.skipped};
}

RunFacts FactsOfTrace(const RankRunOptions& options, const Device& device) {
  return {.scenario_name = options.facts.scenario_name,
          .scenario_hash = options.facts.scenario_hash,
          .commit = options.facts.commit,
          .machine = device.description(),
          .seed = options.training.seed};
}

/// Behind `num_done` steps of the run, the last of them not being the run's.
bool IsCheckpointDue(const RankRunOptions& options, std::int64_t num_done) {
  const std::int64_t interval = options.checkpoint_interval;
  return interval > 0 && num_done > 0 && num_done % interval == 0;
}

RankOutcome Train(const plan::Program& program, base::Rank rank, const RankRunOptions& options,
                  Executor& executor, Communicators& communicators, Device& device,
                  StepRecorder* recorder) {
  const TrainingIdentity identity{program, options.training.seed, options.facts.scenario_hash};
  if (!options.checkpoint_folder.empty()) {
    CheckReplaceable(options.checkpoint_folder, communicators.control());
  }
  const std::int64_t first =
      options.resume_folder.empty()
          ? 0
          : ResumeTraining(options.resume_folder, identity, executor, communicators);
  RankOutcome outcome;
  RecordedSteps recorded{.steps = {}, .num_warmup_steps = options.num_warmup_steps};
  if (recorder != nullptr) recorded.node = AgreeOnClock(device, communicators.control());
  const std::int64_t end = first + options.num_steps;
  for (std::int64_t step = first; step < end; ++step) {
    if (IsCheckpointDue(options, step - first)) {
      SaveTraining(options.checkpoint_folder, identity, step, executor, communicators);
    }
    const Clock::time_point begin = Clock::now();
    const StepResult result = executor.RunStep(step);
    const double step_s = std::chrono::duration<double>(Clock::now() - begin).count();
    recorded.durations_ps.push_back(static_cast<std::int64_t>(step_s * 1e12));
    if (recorder != nullptr) recorder->EndStep();
    if (rank.value() > 0) continue;
    StepProgress progress = Progress(program, result, step_s);
    progress.step = step + 1;
    progress.memory_bytes = executor.peak_bytes();
    outcome.steps.push_back(progress);
    if (options.on_step) options.on_step(progress);
  }
  if (!options.checkpoint_folder.empty()) {
    SaveTraining(options.checkpoint_folder, identity, end, executor, communicators);
  }
  if (recorder != nullptr) {
    recorded.steps = recorder->TakeSteps();
    recorded.peak_bytes = executor.peak_bytes();
    WriteMeasuredTrace(program, recorded, FactsOfTrace(options, device), options.trace_path,
                       communicators.control());
  }
  if (!outcome.steps.empty()) {
    outcome.median_step_s =
        outcome.steps[MedianStep(recorded.durations_ps, options.num_warmup_steps)].step_s;
  }
  outcome.memory_bytes = executor.peak_bytes();
  return outcome;
}

}  // namespace

RankOutcome RunRank(const plan::Program& program, base::Rank rank, const RankRunOptions& options) {
  at::set_num_threads(options.num_threads);
  const c10::intrusive_ptr<c10d::Store> store = OpenStore(options.environment, options.timeout);
  CheckAgreement(*store, rank, program.num_ranks, FactsOf(program, options));
  const std::unique_ptr<Device> device =
      options.device == DeviceKind::kCpu
          ? MakeCpuDevice(options.timeout)
          : MakeGpuDevice({.local_rank = options.environment.local_rank,
                           .local_world_size = options.environment.local_world_size},
                          options.timeout);
  Positions positions(program, rank, store);
  try {
    GlooFactory control(options.timeout);
    Communicators communicators(program, rank, store, device->communicators(), control);
    const std::unique_ptr<BatchSource> data = MakeData(program, options);
    std::optional<StepRecorder> recorder;
    if (!options.trace_path.empty()) recorder.emplace(program.role(rank), rank, *device);
    StepRecorder* const told = recorder ? &*recorder : nullptr;
    Executor executor(program, rank, communicators, *data,
                      {.training = options.training,
                       .device = device->torch_device(),
                       .before_op = [&](std::uint32_t op) { positions.Enter(op); },
                       .recorder = told});
    return Train(program, rank, options, executor, communicators, *device, told);
  } catch (const base::IoError& error) {
    throw base::IoError(error.what() + positions.Describe());
  }
}

}  // namespace isthmus::backend
