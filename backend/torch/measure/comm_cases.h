#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/torch/comm/communicator.h"
#include "backend/torch/device/device.h"
#include "traces/measured_row.h"

namespace isthmus::backend {

/// The ranks that measure together: all of them, and the first 2, 4, 8.
struct MeasuringRanks {
  int rank = 0;
  int num_ranks = 1;
  std::unique_ptr<Communicator> all;
  std::vector<std::unique_ptr<Communicator>> parts;  // those that this rank is a member of

  /// Returns on all ranks when all are there; waiting takes no core.
  void Meet() const;
  /// The mean of what all ranks say.
  double Mean(double value) const;
};

/// The common collectives between tensors of `device` over `parts`, whose communicators are the
/// device's: rows `staged.<kind>.ranks_<n>`, held out. All ranks call it; rows come on rank 0.
std::vector<traces::MeasuredRow> MeasureStaged(
    const MeasuringRanks& ranks, const std::vector<std::unique_ptr<Communicator>>& parts,
    Device& device);

/// Every collective, by size, among the ranks of each part, and messages between two. All ranks
/// call it. The rows come on rank 0: value is wall time a call, core_s the mean processor time of a
/// member.
std::vector<traces::MeasuredRow> MeasureCommunication(const MeasuringRanks& ranks, bool quick);

}  // namespace isthmus::backend
