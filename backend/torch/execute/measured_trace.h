#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/record/program_record.h"
#include "backend/torch/comm/communicator.h"
#include "plan/program/program.h"
#include "traces/trace.h"

namespace isthmus::backend {

/// What one rank recorded of a run.
struct RecordedSteps {
  struct Step {
    std::vector<traces::Event> events;
    std::int64_t duration_ps = 0;
  };
  std::vector<Step> steps;
  std::int32_t node = 0;  // equal on ranks of one host
  std::int64_t num_warmup_steps = 0;
  std::int64_t peak_bytes = 0;
};

/// Writes the step whose duration on rank 0 is the median after the warm-up, as all ranks recorded
/// it, from rank 0. All ranks call it. A send is over when its receive is: the sender can't tell.
/// Throws base::IoError where the file can't be written.
void WriteMeasuredTrace(const plan::Program& program, const RecordedSteps& recorded,
                        const RunFacts& facts, const std::string& path, Communicator& control);

}  // namespace isthmus::backend
