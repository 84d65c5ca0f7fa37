#include "backend/torch/execute/executor.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/torch/comm/words.h"
#include "backend/torch/dtype.h"
#include "base/error.h"
#include "plan/program/print.h"

namespace isthmus::backend {

Executor::Executor(const plan::Program& program, base::Rank rank, Communicators& communicators,
                   BatchSource& data, Device& device, Options options)
    : program_(program),
      rank_(rank),
      role_(program.role(rank)),
      communicators_(communicators),
      device_(device),
      options_(std::move(options)),
      values_(role_),
      scaler_(options_.training.loss_scaling) {
  Check();
  MakeChunks();
  NameRanges();
  for (std::size_t edge = 0; edge < program.edges.size(); ++edge) {
    boundaries_.emplace_back(program, edge, rank, device_.torch_device());
  }
  compute_ = std::make_unique<Compute>(Compute::Parts{.program = program,
                                                      .rank = rank,
                                                      .device = device_.torch_device(),
                                                      .chunks = chunks_,
                                                      .boundaries = boundaries_,
                                                      .values = values_,
                                                      .data = data});
}

Executor::~Executor() = default;

void Executor::Check() const {
  if (program_.num_steps != 1) {
    throw base::Error(
        fmt::format("error: the program has {} steps; real ranks run one of one step "
                    "again and again",
                    program_.num_steps));
  }
  if (program_.schedule.protocol != plan::MessageProtocol::kSingle) {
    throw base::Error("error: shapes in front of payloads are simulated only");
  }
  for (const plan::PlacedModule& placed : program_.modules) {
    const plan::Module& module = placed.module;
    if (module.settings.backward == plan::BackwardMode::kAbsent && !module.settings.frozen) {
      throw base::Error(fmt::format(
          "error: module {} is trained without a backward (backward: absent), which can only be "
          "simulated\n  hint: backward: real",
          module.name));
    }
    const bool projects_later =
        module.projector && module.projector->place == plan::Projector::Place::kWithLlm;
    if (projects_later && program_.edges.size() > 1) {
      throw base::Error(fmt::format(
          "error: the projector of {} runs with the llm beside other encoders, which is not built "
          "on real ranks\n  hint: projector.with: encoder",
          module.name));
    }
  }
}

void Executor::MakeChunks() {
  for (const plan::ModuleStage& at : role_.stages) {
    const plan::PlacedModule& placed = program_.modules[at.module];
    std::vector<Chunk*> chunks;
    for (int chunk = 0; chunk < placed.num_chunks(); ++chunk) {
      const ChunkOptions options{
          .module = at.module,
          .virtual_stage = chunk * placed.grid.size(plan::Axis::kPp) + at.stage,
          .rank = rank_,
          .device = device_.torch_device()};
      auto& made = chunks_[{at.module, static_cast<std::uint16_t>(chunk)}];
      made = MakeChunk(program_, options, communicators_);
      chunks.push_back(made.get());
    }
    parameters_[at.module] = std::make_unique<ModuleParameters>(
        program_, at.module, rank_, chunks, options_.training, device_.torch_device());
  }
}

void Executor::NameRanges() {
  if (!device_.shows_ranges()) return;
  for (const plan::Op& op : role_.ops) ranges_.push_back(plan::Describe(program_, role_, op));
}

std::vector<std::uint16_t> Executor::modules() const {
  std::vector<std::uint16_t> modules;
  for (const auto& [module, parameters] : parameters_) modules.push_back(module);
  return modules;
}

at::ScalarType Executor::ScalarType(std::uint16_t module) const {
  const plan::ModuleSettings& settings = program_.modules[module].module.settings;
  return settings.gradient_dtype == plan::DType::kFp64 ? at::kDouble : at::kFloat;
}

bool Executor::has_fp16() const {
  return std::any_of(program_.modules.begin(), program_.modules.end(),
                     [](const plan::PlacedModule& placed) {
                       return placed.module.settings.precision == plan::DType::kFp16;
                     });
}

StepResult Executor::RunStep(std::int64_t step) {
  sums_ = {.step = step, .loss_scale = has_fp16() ? scaler_.scale() : 1.0, .loss = {}, .tokens = 0};
  scalars_ = {};
  try {
    for (position_ = 0; position_ < role_.ops.size(); ++position_) {
      if (options_.before_op) options_.before_op(position_);
      communicators_.EnterOp(position_);
      RunOp(position_);
    }
    values_.WaitForAll();
    for (Pending& send : sends_) send.Wait();
    sends_.clear();
    if (options_.before_op) options_.before_op(position_);
    return EndStep();
  } catch (const base::IoError& error) {
    throw base::IoError(error.what() + DescribePosition(step));
  } catch (const c10::Error& error) {  // no memory, say
    throw base::IoError("error: " + WordsOf(error) + DescribePosition(step));
  }
}

std::string Executor::DescribePosition(std::int64_t step) const {
  if (position_ == role_.ops.size()) return {};
  return fmt::format("\n  in op {} of rank {} in step {}: {}", position_, rank_.value(), step + 1,
                     plan::Describe(program_, role_, role_.ops[position_]));
}

void Executor::RunOp(std::uint32_t index) {
  const plan::Op& op = role_.ops[index];
  values_.Wait(op);
  if (options_.recorder != nullptr) options_.recorder->Begin(index);
  if (!ranges_.empty()) device_.EnterRange(ranges_[index]);
  Dispatch(op);
  if (!ranges_.empty()) device_.LeaveRange();
  if (options_.recorder != nullptr) RecordEnd(op);
  values_.CountProduced(op);
  std::int64_t held = values_.held_bytes();
  for (const auto& [module, parameters] : parameters_) held += parameters->num_bytes();
  peak_bytes_ = std::max(peak_bytes_, held);
  values_.ReleaseAfter(index);
}

void Executor::RecordEnd(const plan::Op& op) {
  if (op.kind == plan::OpKind::kCollective) {
    for (Pending& pending : values_.At(role_.produced_by(op).front()).pending) {
      options_.recorder->Watch(position_, pending);
    }
  }
  if (op.kind == plan::OpKind::kCopy) options_.recorder->WatchCopies(position_);
  options_.recorder->End(position_);
}

void Executor::Dispatch(const plan::Op& op) {
  switch (op.kind) {
    case plan::OpKind::kCompute:
      compute_->Run(op, sums_);
      break;
    case plan::OpKind::kCollective:
      Collective(op);
      break;
    case plan::OpKind::kP2P:
      Exchange(op);
      break;
    case plan::OpKind::kCopy:
      Copy(op);
      break;
    case plan::OpKind::kOptimizer:
      Optimize(op);
      break;
  }
}

void Executor::Copy(const plan::Op& op) {
  if (op.copy() == plan::CopyDirection::kToHost) {
    parameters_.at(op.module)->MoveToHost(device_);
  } else {
    parameters_.at(op.module)->MoveToDevice(device_);
    for (const plan::ValueId value : role_.produced_by(op)) {
      values_.At(value).finish = [this](HeldValue& /*value*/) { device_.WaitForCopies(); };
    }
  }
}

}  // namespace isthmus::backend
