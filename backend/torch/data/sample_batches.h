#pragma once

#include <map>
#include <memory>

#include "backend/torch/data/batch_source.h"
#include "backend/torch/data/task.h"

namespace isthmus::backend {

/// Gives ranks of `program` their part of a task's samples: those of step s are numbers
/// s · global_batch and up, each at the place that the workload's sample_order gives it. Keeps the
/// samples of one step that the rank has asked for. Lifetime: the program outlives it.
class SampleBatches final : public BatchSource {
 public:
  SampleBatches(const plan::Program& program, std::unique_ptr<Task> task)
      : program_(program), task_(std::move(task)) {}

  BlockData Get(const BatchRequest& request) override;

 private:
  const Sample& At(std::int64_t step, std::int64_t place);
  BlockData ForEncoder(const BatchRequest& request);
  BlockData ForDecoder(const BatchRequest& request);

  const plan::Program& program_;
  std::unique_ptr<Task> task_;
  std::int64_t step_ = -1;
  std::map<std::int64_t, Sample> samples_;  // of step_, by place in the global batch
};

}  // namespace isthmus::backend
