#include "backend/torch/record/step_recorder.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::backend {

StepRecorder::StepRecorder(const plan::Role& role, base::Rank rank, Device& device)
    : role_(role), rank_(rank), device_(device) {
  device_.RecordKernels();
}

void StepRecorder::Begin(std::uint32_t op) {
  current_ = intervals_.size();
  intervals_.push_back({.op = op, .inner = 0, .begin = device_.Record(), .ends = {}});
}

void StepRecorder::End(std::uint32_t op) {
  Interval& interval = intervals_[current_];
  ISTHMUS_CHECK(interval.op == op, "op {} ends within op {}", op, interval.op);
  if (interval.ends.empty()) interval.ends.push_back(device_.Record());
}

void StepRecorder::Watch(std::uint32_t op, Pending& pending) {
  intervals_[current_].ends.push_back(device_.RecordEnd(pending, role_.ops[op].lane));
}

void StepRecorder::WatchCopies(std::uint32_t op) {
  Interval& interval = intervals_[current_];
  ISTHMUS_CHECK(interval.op == op, "op {} copies within op {}", op, interval.op);
  interval.ends.push_back(device_.RecordCopies());
}

void StepRecorder::WatchTransfer(std::uint32_t op, std::uint32_t transfer, Pending& pending) {
  const Mark begin = intervals_[current_].begin;
  const std::uint32_t inner = transfer - role_.ops[op].first_transfer + 1;
  intervals_.push_back({.op = op,
                        .inner = inner,
                        .begin = begin,
                        .ends = {device_.RecordEnd(pending, role_.ops[op].lane)}});
}

void StepRecorder::EndStep() {
  device_.Synchronize();
  RecordedStep& step = steps_.emplace_back();
  std::vector<traces::Event>& events = step.events;
  events.reserve(intervals_.size());
  for (const Interval& interval : intervals_) {
    const std::int64_t begin = device_.TimeOf(interval.begin);
    std::int64_t end = begin;
    for (const Mark mark : interval.ends) end = std::max(end, device_.TimeOf(mark));
    events.push_back({.rank_class = static_cast<std::uint32_t>(rank_.value()),
                      .op = interval.op,
                      .inner = interval.inner,
                      .issue_ps = begin,
                      .start_ps = begin,
                      .end_ps = end});
  }
  step.kernels = AssignKernels(role_, events, device_.TakeKernels(), names_);
  intervals_.clear();
  device_.ForgetMarks();
}

}  // namespace isthmus::backend
