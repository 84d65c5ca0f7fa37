#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/torch/comm/communicator.h"
#include "backend/torch/device/device.h"
#include "traces/measured_row.h"

namespace isthmus::backend {

/// The ranks that measure together: all of them, and in parts of 2, 4, 8 neighbours, whose first
/// rank is a multiple of that. Ranks that fill no part are in none of that size.
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

/// The common collectives between tensors of `device` over those of `parts` that begin with rank 0,
/// whose communicators are the device's: rows `staged.<kind>.ranks_<n>`, held out. All ranks call
/// it; rows come on rank 0.
std::vector<traces::MeasuredRow> MeasureStaged(
    const MeasuringRanks& ranks, const std::vector<std::unique_ptr<Communicator>>& parts,
    Device& device);

/// Every collective and messages between two, by size, in all parts of one size at once, as the
/// groups of a program run beside each other. In front of each call, members compute for some
/// tenths of a millisecond. All ranks call it. The rows come on rank 0: value is the time from the
/// last member's begin to the last one's end, core_s the mean processor time of a member.
std::vector<traces::MeasuredRow> MeasureCommunication(const MeasuringRanks& ranks, bool quick);

}  // namespace isthmus::backend
