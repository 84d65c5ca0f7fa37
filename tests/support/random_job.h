#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/job.h"

/// Seeded random jobs for property tests.
namespace isthmus::tests {

/// Which jobs RandomJob() may return.
struct RandomJobOptions {
  std::optional<plan::Placement> placement;  // absent: any of the three
  int min_ranks = 2;
  int max_ranks = 32;  // up to 72
  int max_steps = 2;
  /// Whether encoders may leave their backward out (BackwardMode::kAbsent: simulation only).
  bool absent_backward = true;
  /// Whether every sample has a number of images and clips of its own, 0 to 6.
  bool uneven_samples = false;
};

/// A small job that scenarios would let through: 1 to 3 modules of 2 to 8 layers, any degrees whose
/// product fits, both axis orders, uneven stages, several chunks a rank, CP, frozen modules,
/// projectors on either side, recompute, offload, optimizer instances, both overlap passes on and
/// off, 1 to 6 microbatches.
///
/// A function of the seed and the options alone. Needs 2 <= min_ranks <= max_ranks.
plan::Job RandomJob(std::uint64_t seed, const RandomJobOptions& options = {});

/// One line that tells what is special about a job, for messages of failed tests.
std::string Summary(const plan::Job& job);

}  // namespace isthmus::tests
