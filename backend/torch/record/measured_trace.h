#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/record/program_record.h"
#include "backend/torch/comm/communicator.h"
#include "backend/torch/device/device.h"
#include "backend/torch/record/step_recorder.h"
#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::backend {

/// What one rank recorded of a run.
struct RecordedSteps {
  std::vector<RecordedStep> steps;         // StepRecorder::TakeSteps()
  std::vector<std::string> kernel_names;   // StepRecorder::kernel_names()
  std::vector<std::int64_t> durations_ps;  // by step, of this rank
  std::int32_t node = 0;                   // equal on ranks of one host
  std::int64_t num_warmup_steps = 0;
  DeviceMemory memory;  // at the end of the run
};

/// Sets the clocks of ranks on rank 0's host to one time 0, those of other hosts to a near one, and
/// numbers the hosts in the order of their first rank; returns this rank's. All ranks call it.
std::int32_t AgreeOnClock(Device& device, Communicator& control);

/// Writes the step whose duration on rank 0 is the median after the warm-up, as all ranks recorded
/// it, from rank 0. All ranks call it. A send is over when its receive is: the sender can't tell.
/// Throws base::IoError where the file can't be written.
void WriteMeasuredTrace(const plan::Program& program, const RecordedSteps& recorded,
                        const RunFacts& facts, const std::string& path, Communicator& control);

}  // namespace isthmus::backend
