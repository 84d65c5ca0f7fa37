#include "backend/torch/run_rank.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "backend/torch/checkpoint/checkpoint.h"
#include "backend/torch/checkpoint/training_checkpoint.h"
#include "backend/torch/comm/run_on_all.h"
#include "backend/torch/data/sample_batches.h"
#include "backend/torch/device/device.h"
#include "backend/torch/execute/executor.h"
#include "backend/torch/record/measured_trace.h"
#include "backend/torch/record/median_step.h"
#include "backend/torch/record/step_recorder.h"
#include "backend/torch/start/rank_store.h"
#include "base/error.h"
#include "base/hash.h"
#include "traces/trace_file.h"

namespace isthmus::backend {
namespace {

using Clock = std::chrono::steady_clock;

/// What has to be equal on all ranks, a line each.
std::string FactsOf(const plan::Program& program, const RankRunOptions& options) {
  const TrainingOptions& training = options.training;
  std::string facts = fmt::format(
      "commit: {}\ntorch: {}\nprogram: {}\nranks on: {}\ntrace: {}\nsteps: {}\ntask: {}\nseed: {}\n"
      "checkpoint: {} every {}\nresume: {}\n",
      options.facts.commit, TORCH_VERSION, base::HashText(plan::Hash(program)),
      options.device == DeviceKind::kCpu ? "cpu" : "gpu",
      options.trace_path.empty() ? "none" : "written", options.num_steps,
      static_cast<int>(options.data), training.seed, options.checkpoint_folder,
      options.checkpoint_interval, options.resume_folder);
  const LearningRate& rate = training.learning_rate;
  facts += fmt::format("learning rate: {} to {} by {}, {} and {} steps\n", rate.peak, rate.minimum,
                       static_cast<int>(rate.decay), rate.warmup_steps, rate.decay_steps);
  facts += fmt::format("adam: {} {} {} {}\nclip norm: {}\ninitial std: {}\n", training.beta1,
                       training.beta2, training.epsilon, training.weight_decay, training.clip_norm,
                       training.initial_std);
  const auto& scaling = training.loss_scaling;
  return facts + fmt::format("loss scale: {} {} {} {}", scaling.initial_scale,
                             scaling.growth_factor, scaling.backoff_factor,
                             scaling.growth_interval);
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

// A CPU's allocator counts nothing; the executor knows what its own tensors take.
DeviceMemory MemoryOf(const Device& device, const Executor& executor) {
  DeviceMemory memory = device.memory();
  if (memory.capacity_bytes == 0) memory.peak_allocated_bytes = executor.peak_bytes();
  return memory;
}

Reach ReachOf(const RankEnvironment& environment) {
  return environment.local_world_size == environment.world_size ? Reach::kOneHost
                                                                : Reach::kManyHosts;
}

std::unique_ptr<Device> MakeDevice(const RankRunOptions& options, base::Rank rank, int num_ranks,
                                   c10d::Store& store) {
  const Reach reach = ReachOf(options.environment);
  if (options.device == DeviceKind::kCpu) return MakeCpuDevice(options.timeout, reach);
  return MakeGpuDevice({.local_rank = options.environment.local_rank,
                        .timeout = options.timeout,
                        .reach = reach,
                        .each_has_its_own = [&](const std::string& gpu) {
                          return EachHasItsOwnGpu(store, rank, num_ranks, gpu);
                        }});
}

// What is written at the end must not fail then, as far as it can be known before.
void CheckPlaces(base::Rank rank, const RankRunOptions& options, Communicator& control) {
  if (!options.checkpoint_folder.empty()) CheckPlace(options.checkpoint_folder, control);
  RunOnAll(control, [&] {
    const bool writes = rank.value() == 0 && !options.trace_path.empty();
    if (writes) static_cast<void>(traces::OpenTraceFile(options.trace_path));
  });
}

RankOutcome Train(const plan::Program& program, base::Rank rank, const RankRunOptions& options,
                  Executor& executor, Communicators& communicators, Device& device,
                  StepRecorder* recorder) {
  const TrainingIdentity identity{program, options.training.seed, options.facts.scenario_hash};
  CheckPlaces(rank, options, communicators.control());
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
    progress.memory_bytes = MemoryOf(device, executor).peak_allocated_bytes;
    outcome.steps.push_back(progress);
    if (options.on_step) options.on_step(progress);
  }
  if (!options.checkpoint_folder.empty()) {
    SaveTraining(options.checkpoint_folder, identity, end, executor, communicators);
  }
  if (recorder != nullptr) {
    recorded.steps = recorder->TakeSteps();
    recorded.kernel_names = recorder->kernel_names();
    recorded.memory = MemoryOf(device, executor);
    WriteMeasuredTrace(program, recorded, FactsOfTrace(options, device), options.trace_path,
                       communicators.control());
  }
  if (!outcome.steps.empty()) {
    outcome.median_step_s =
        outcome.steps[MedianStep(recorded.durations_ps, options.num_warmup_steps)].step_s;
  }
  outcome.memory_bytes = MemoryOf(device, executor).peak_allocated_bytes;
  return outcome;
}

}  // namespace

RankOutcome RunRank(const plan::Program& program, base::Rank rank, const RankRunOptions& options) {
  at::set_num_threads(options.num_threads);
  const c10::intrusive_ptr<c10d::Store> store = OpenStore(options.environment, options.timeout);
  CheckAgreement(*store, rank, program.num_ranks, FactsOf(program, options));
  const std::unique_ptr<Device> device = MakeDevice(options, rank, program.num_ranks, *store);
  Positions positions(program, rank, store);
  std::optional<Communicators> communicators;
  try {
    GlooFactory control(options.timeout, ReachOf(options.environment));
    communicators.emplace(program, rank, store, device->communicators(), control);
    const std::unique_ptr<BatchSource> data = MakeData(program, options);
    std::optional<StepRecorder> recorder;
    if (!options.trace_path.empty()) recorder.emplace(program.role(rank), rank, *device);
    StepRecorder* const told = recorder ? &*recorder : nullptr;
    Executor executor(program, rank, *communicators, *data, *device,
                      {.training = options.training,
                       .before_op = [&](std::uint32_t op) { positions.Enter(op); },
                       .recorder = told});
    return Train(program, rank, options, executor, *communicators, *device, told);
  } catch (const base::IoError& error) {
    const std::string where = positions.Describe();
    // Their ends would wait for what no partner answers.
    if (communicators) communicators->Abort();
    throw base::IoError(error.what() + where);
  }
}

}  // namespace isthmus::backend
