#include "tests/support/torch/parity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "backend/torch/checkpoint/element_runs.h"
#include "backend/torch/checkpoint/training_parts.h"
#include "backend/torch/data/sample_batches.h"
#include "tests/support/torch/reference_model.h"
#include "tests/support/torch_ranks.h"

namespace isthmus::tests {
namespace {

using backend::StateKind;
using backend::StoredPart;

constexpr auto kTimeout = std::chrono::seconds(120);

/// What the reference has after a step.
struct Expected {
  double loss = 0.0;
  double norm = 0.0;
  std::map<StateKind, NamedTensors> tensors;
};

NamedTensors CopyOf(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, tensor] : tensors) copy[name] = tensor.detach().clone();
  return copy;
}

std::unique_ptr<backend::Task> TaskOf(const ParityRun& run, const plan::Program& program) {
  return backend::MakeTask(run.task, backend::ShapeOfSamples(program), {.seed = run.training.seed});
}

std::vector<Expected> RunReference(const ParityRun& run, const plan::Program& program,
                                   at::ScalarType type) {
  // Threads of OpenMP that wait for each other on a busy machine take a minute for a second's work.
  at::set_num_threads(1);
  ReferenceModel model(run.job, run.training, type);
  const auto task = TaskOf(run, program);
  const std::int64_t batch = run.job.workload.global_batch;
  std::vector<Expected> steps;
  for (std::int64_t step = 0; step < run.num_steps; ++step) {
    std::vector<backend::Sample> samples;
    for (std::int64_t index = 0; index < batch; ++index) {
      samples.push_back(task->Draw(step * batch + index));
    }
    Expected& expected = steps.emplace_back();
    expected.loss = model.Step(samples);
    expected.norm = model.gradient_norm();
    expected.tensors[StateKind::kWeight] = CopyOf(model.parameters());
    expected.tensors[StateKind::kGradient] = CopyOf(model.gradients());
    expected.tensors[StateKind::kFirstMoment] = CopyOf(model.first_moments());
    expected.tensors[StateKind::kSecondMoment] = CopyOf(model.second_moments());
  }
  return steps;
}

double Relative(double value, double expected) {
  return std::abs(value - expected) / std::max(std::abs(expected), 1e-300);
}

/// Elements of a part that lie in one global tensor: indices there and in the part.
struct Overlap {
  std::string name;
  at::Tensor global;
  at::Tensor local;
};

std::vector<Overlap> OverlapsOf(const StoredPart& part) {
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> indices;
  for (const auto& run : backend::RunsOf(*part.parameter, part.begin, part.end)) {
    auto& [global, local] = indices[run.piece->name];
    for (std::int64_t at = 0; at < run.size; ++at) {
      global.push_back(run.global_begin + at);
      local.push_back(run.local_begin + at - part.begin);
    }
  }
  std::vector<Overlap> overlaps;
  for (const auto& [name, pair] : indices) {
    const auto to_tensor = [](const std::vector<std::int64_t>& values) {
      return at::tensor(values, at::TensorOptions(at::kLong));
    };
    overlaps.push_back({name, to_tensor(pair.first), to_tensor(pair.second)});
  }
  return overlaps;
}

/// |values - expected|₂ over the rank's elements, relative to the whole expected tensor.
double Distance(const at::Tensor& values, const at::Tensor& expected, const Overlap& overlap) {
  const at::Tensor whole = expected.view({-1}).to(at::kDouble);
  const at::Tensor difference =
      values.index_select(0, overlap.local).to(at::kDouble) - whole.index_select(0, overlap.global);
  const double distance = difference.norm().item<double>();
  const double norm = whole.norm().item<double>();
  if (!std::isfinite(distance)) return INFINITY;
  if (norm == 0.0) return distance == 0.0 ? 0.0 : 1.0;
  return distance / norm;
}

double& FieldOf(StepDistance& distance, StateKind kind) {
  switch (kind) {
    case StateKind::kWeight:
      return distance.weight;
    case StateKind::kGradient:
      return distance.gradient;
    case StateKind::kFirstMoment:
      return distance.first_moment;
    case StateKind::kSecondMoment:
      break;
  }
  return distance.second_moment;
}

StepDistance WorstOf(const StepDistance& a, const StepDistance& b) {
  return {std::max(a.loss, b.loss),
          std::max(a.norm, b.norm),
          std::max(a.gradient, b.gradient),
          std::max(a.weight, b.weight),
          std::max(a.first_moment, b.first_moment),
          std::max(a.second_moment, b.second_moment)};
}

/// Which elements of the reference's weights some rank had.
class Coverage {
 public:
  void Add(const std::vector<StoredPart>& parts) {
    for (const StoredPart& part : parts) {
      for (const Overlap& overlap : OverlapsOf(part)) {
        auto& seen = seen_[overlap.name];
        const std::int64_t* index = overlap.global.const_data_ptr<std::int64_t>();
        seen.insert(index, index + overlap.global.numel());
      }
    }
  }
  std::vector<std::string> Missing(const NamedTensors& expected) const {
    std::vector<std::string> missing;
    for (const auto& [name, tensor] : expected) {
      const auto found = seen_.find(name);
      const std::size_t count = found == seen_.end() ? 0 : found->second.size();
      if (count != static_cast<std::size_t>(tensor.numel())) missing.push_back(name);
    }
    return missing;
  }

 private:
  std::map<std::string, std::set<std::int64_t>> seen_;
};

std::vector<StoredPart> PartsOf(backend::Executor& executor) {
  std::vector<StoredPart> parts;
  for (const std::uint16_t module : executor.modules()) {
    backend::ModuleParameters& parameters = executor.ParametersOf(module);
    for (auto&& list : {backend::OwnedParts(parameters), backend::OwnedGradients(parameters),
                        backend::FrozenWeights(parameters)}) {
      parts.insert(parts.end(), list.begin(), list.end());
    }
  }
  return parts;
}

/// Compares everything of `parts` with the reference.
StepDistance Compare(const std::vector<StoredPart>& parts, const Expected& expected) {
  StepDistance worst;
  for (const StoredPart& part : parts) {
    for (const Overlap& overlap : OverlapsOf(part)) {
      for (const StoredPart::State& state : part.states) {
        const NamedTensors& reference = expected.tensors.at(state.kind);
        const auto found = reference.find(overlap.name);
        const double distance =
            found == reference.end() ? 1.0 : Distance(state.values, found->second, overlap);
        double& field = FieldOf(worst, state.kind);
        field = std::max(field, distance);
      }
    }
  }
  return worst;
}

/// A rank with everything it needs, on its own thread.
class RankUnderTest {
 public:
  RankUnderTest(const ParityRun& run, const plan::Program& program, base::Rank rank,
                const c10::intrusive_ptr<c10d::Store>& store)
      : factory_(run.factory ? run.factory(rank)
                             : std::make_unique<backend::GlooFactory>(kTimeout)),
        communicators_(program, rank, store, *factory_),
        batches_(program, TaskOf(run, program)),
        device_(backend::MakeCpuDevice(kTimeout)),
        executor_(program, rank, communicators_, batches_, *device_,
                  {.training = run.training, .before_op = [&run, &program, rank](std::uint32_t op) {
                     if (run.before_op) run.before_op(program.role(rank), rank, op);
                   }}) {}
  backend::Executor& executor() { return executor_; }
  backend::Communicators& communicators() { return communicators_; }

 private:
  std::unique_ptr<backend::BackendFactory> factory_;
  backend::Communicators communicators_;
  backend::SampleBatches batches_;
  std::unique_ptr<backend::Device> device_;
  backend::Executor executor_;
};

double GatheredDistance(backend::Executor& executor, const Expected& expected) {
  executor.GatherParameters();
  double worst = 0.0;
  for (const std::uint16_t module : executor.modules()) {
    const auto weights = backend::WorkingWeights(executor.ParametersOf(module));
    worst = std::max(worst, Compare(weights, expected).weight);
  }
  return worst;
}

}  // namespace

double StepDistance::worst() const {
  return std::max({loss, norm, gradient, weight, first_moment, second_moment});
}

StepDistance ParityOutcome::worst() const {
  StepDistance worst;
  for (const StepDistance& step : steps) worst = WorstOf(worst, step);
  return worst;
}

backend::TrainingOptions ParityTraining() {
  backend::TrainingOptions training;
  training.learning_rate.peak = 2e-3;
  training.learning_rate.warmup_steps = 2;
  training.epsilon = 1e-6;
  training.weight_decay = 0.01;
  training.initial_std = 0.1;
  training.seed = 11;
  return training;
}

ParityOutcome RunParity(const ParityRun& run, at::ScalarType reference_type) {
  const plan::Program program = plan::Build(run.job);
  const std::vector<Expected> expected = RunReference(run, program, reference_type);
  ParityOutcome outcome;
  outcome.steps.resize(expected.size());
  Coverage coverage;
  std::mutex mutex;
  RunOnThreads(program.num_ranks, [&](base::Rank rank, const auto& store) {
    RankUnderTest under_test(run, program, rank, store);
    backend::Executor& executor = under_test.executor();
    for (std::size_t step = 0; step < expected.size(); ++step) {
      const backend::StepResult result = executor.RunStep(static_cast<std::int64_t>(step));
      StepDistance distance = Compare(PartsOf(executor), expected[step]);
      distance.loss = Relative(result.loss, expected[step].loss);
      if (run.job.optimizer.clip_gradients) {
        distance.norm = Relative(result.gradient_norm, expected[step].norm);
      }
      const std::lock_guard lock(mutex);
      outcome.steps[step] = WorstOf(outcome.steps[step], distance);
      if (rank.value() == 0) outcome.losses.push_back(result.loss);
      if (step == 0) coverage.Add(PartsOf(executor));
    }
    const double gathered = GatheredDistance(executor, expected.back());
    const std::lock_guard lock(mutex);
    outcome.gathered_weight = std::max(outcome.gathered_weight, gathered);
  });
  outcome.missing = coverage.Missing(expected.front().tensors.at(StateKind::kWeight));
  return outcome;
}

void RunExecutors(const ParityRun& run,
                  const std::function<void(const plan::Program&, base::Rank, backend::Executor&,
                                           backend::Communicators&)>& body) {
  const plan::Program program = plan::Build(run.job);
  RunOnThreads(program.num_ranks, [&](base::Rank rank, const auto& store) {
    RankUnderTest under_test(run, program, rank, store);
    body(program, rank, under_test.executor(), under_test.communicators());
  });
}

std::vector<double> LossesOf(const ParityRun& run) {
  std::vector<double> losses;
  RunExecutors(run, [&](const plan::Program&, base::Rank rank, backend::Executor& executor,
                        backend::Communicators&) {
    for (int step = 0; step < run.num_steps; ++step) {
      const double loss = executor.RunStep(step).loss;
      if (rank.value() == 0) losses.push_back(loss);
    }
  });
  return losses;
}

}  // namespace isthmus::tests
