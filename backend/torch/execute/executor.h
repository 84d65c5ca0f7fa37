#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/torch/comm/communicators.h"
#include "backend/torch/data/batch_source.h"
#include "backend/torch/device/device.h"
#include "backend/torch/execute/boundary_transform.h"
#include "backend/torch/execute/compute.h"
#include "backend/torch/execute/value_table.h"
#include "backend/torch/optimizer/loss_scaler.h"
#include "backend/torch/optimizer/module_parameters.h"
#include "backend/torch/record/step_recorder.h"
#include "backend/torch/training_options.h"
#include "plan/program/program.h"

namespace isthmus::backend {

/// What came of a step; equal on all ranks.
struct StepResult {
  double loss = 0.0;           // mean over the world's valid tokens
  std::int64_t tokens = 0;     // valid ones of the world
  double gradient_norm = 0.0;  // before clipping; 0 where the program takes none
  double loss_scale = 1.0;     // with which the step ran
  bool skipped = false;        // infinities were found
};

/// Runs one rank of a program on real tensors, op by op in the host's order. It decides nothing.
///
/// Compute and Optimizer ops run in the calling thread; collectives and messages are posted and
/// waited for where a value they make is consumed. The program is of one step and is run again for
/// every step; weights, main gradients and optimizer state persist.
/// After a step, a rank has updated the part of each bucket that it owns; the others' parts come
/// with the next step's gather, or with GatherParameters().
/// Belongs to one rank's thread. Lifetime: program, communicators, data and device outlive it.
class Executor {
 public:
  struct Options {
    TrainingOptions training;
    /// Called before each op with its index in the role's list, and with the number of ops behind
    /// the last one.
    std::function<void(std::uint32_t op)> before_op = {};
    /// Told when ops run; who calls RunStep ends its steps. Null: nobody is told.
    StepRecorder* recorder = nullptr;
  };

  /// Throws base::Error for a program that real ranks can't run: several steps, a module without a
  /// backward, fp8, an encoder without input width, shapes in front of payloads.
  Executor(const plan::Program& program, base::Rank rank, Communicators& communicators,
           BatchSource& data, Device& device, Options options);
  ~Executor();

  /// Runs a step; `step` (from 0) names its data. Throws base::IoError that names the op where
  /// other ranks don't come.
  StepResult RunStep(std::int64_t step);

  /// Brings all ranks' parts of all weights; every rank calls it.
  void GatherParameters();

  /// Modules of this rank, ascending.
  std::vector<std::uint16_t> modules() const;
  ModuleParameters& ParametersOf(std::uint16_t module) { return *parameters_.at(module); }
  LossScaler& loss_scaler() { return scaler_; }
  std::int64_t num_updates() const { return num_updates_; }
  void set_num_updates(std::int64_t updates) { num_updates_ = updates; }
  /// Most that weights, gradients, optimizer state and the tensors of values took so far; what
  /// autograd saves inside a block is not in it.
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void Check() const;
  void MakeChunks();
  void NameRanges();
  void RunOp(std::uint32_t index);
  void RecordEnd(const plan::Op& op);
  std::string DescribePosition(std::int64_t step) const;
  void Dispatch(const plan::Op& op);
  void Copy(const plan::Op& op);
  // exchange.cc
  void Exchange(const plan::Op& op);
  Message ToReceive(std::uint32_t at);
  Message ToSend(std::uint32_t at);
  at::Tensor EmptyFor(const plan::Storage& storage, std::int64_t bytes) const;
  // collective.cc
  void Collective(const plan::Op& op);
  void SyncGradients(const plan::Op& op);
  void BoundaryCollective(const plan::Op& op);
  void SumScalar(const plan::Op& op);
  at::Tensor Contribution(const plan::Op& op);
  // optimize.cc
  void Optimize(const plan::Op& op);
  void ProduceScalar(const plan::Op& op, plan::WorldScalar kind, const at::Tensor& value);
  void ReadScalars(const plan::Op& op);
  double GradientScale() const;
  /// What ended a step on the world: sums of tokens and loss, the largest found_inf, and
  /// the norm that ranks with trained parameters have.
  struct Totals {
    double tokens = 0.0;
    double loss = 0.0;
    double found_inf = 0.0;
    std::optional<double> squared_norm = {};
  };
  Totals AgreeOnTotals();
  StepResult EndStep();

  at::ScalarType ScalarType(std::uint16_t module) const;
  bool has_fp16() const;

  const plan::Program& program_;
  base::Rank rank_;
  const plan::Role& role_;
  Communicators& communicators_;
  Device& device_;
  Options options_;
  std::vector<std::string> ranges_;  // by op; empty: nobody sees them
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::unique_ptr<Chunk>> chunks_;
  std::map<std::uint16_t, std::unique_ptr<ModuleParameters>> parameters_;
  std::vector<BoundaryTransform> boundaries_;  // by edge
  ValueTable values_;
  std::unique_ptr<Compute> compute_;
  std::vector<Pending> sends_;
  LossScaler scaler_;
  std::int64_t num_updates_ = 0;
  std::int64_t peak_bytes_ = 0;
  // Of the step that runs.
  struct Scalars {
    double tokens = 0.0;
    double found_inf = 0.0;
    std::optional<double> squared_norm = {};
  };
  StepSums sums_;
  Scalars scalars_;
  std::uint32_t position_ = 0;
};

}  // namespace isthmus::backend
