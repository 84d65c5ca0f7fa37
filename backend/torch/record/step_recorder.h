#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backend/torch/comm/communicator.h"
#include "backend/torch/device/device.h"
#include "backend/torch/record/kernel_ops.h"
#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::backend {

/// What one rank recorded of a step, by its own clock.
struct RecordedStep {
  std::vector<traces::Event> events;
  std::vector<traces::KernelRun> kernels;  // none where the device has no profiler
};

/// Records when the ops of a rank's steps came to their turn, and when they and their messages were
/// over, by the rank's own clock: start is the rank's own, whoever was missing.
///
/// An op is noted by Begin() when its values are there, and by End() or, for what was posted, by
/// Watch(). The times are read from the device behind the step. Belongs to one rank's thread.
/// Memory: 40 bytes an op and message of every step, 32 a kernel. Lifetime: role and device outlive
/// it.
class StepRecorder {
 public:
  StepRecorder(const plan::Role& role, base::Rank rank, Device& device);

  void Begin(std::uint32_t op);
  /// The op is over where the device is now (a P2P op: posted).
  void End(std::uint32_t op);
  /// The op is over with the copies launched so far.
  void WatchCopies(std::uint32_t op);
  /// The op is over with `pending`; several of one op: with the last.
  void Watch(std::uint32_t op, Pending& pending);
  /// Transfer `transfer` (index into the role's) of the op is over with `pending`.
  void WatchTransfer(std::uint32_t op, std::uint32_t transfer, Pending& pending);
  /// Behind a step: everything was waited for.
  void EndStep();

  /// Hands out what was recorded, by step, in the order of ops.
  std::vector<RecordedStep> TakeSteps() { return std::exchange(steps_, {}); }
  /// Of kernels, by KernelRun::name.
  const std::vector<std::string>& kernel_names() const { return names_.texts(); }

 private:
  struct Interval {
    std::uint32_t op = 0;
    std::uint32_t inner = 0;
    Mark begin = 0;
    std::vector<Mark> ends;
  };

  const plan::Role& role_;
  base::Rank rank_;
  Device& device_;
  std::vector<Interval> intervals_;  // of the step that runs
  std::size_t current_ = 0;          // the op's own among them
  std::vector<RecordedStep> steps_;
  KernelNames names_;
};

}  // namespace isthmus::backend
