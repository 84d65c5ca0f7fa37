#pragma once

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/torch/parity.h"
#include "tests/support/torch/parity_jobs.h"

namespace isthmus::tests {

/// The largest distances of a run, for people.
inline void PrintWorst(const ParityOutcome& outcome) {
  const StepDistance worst = outcome.worst();
  std::printf(
      "[  PARITY  ] loss %.1e norm %.1e gradient %.1e weight %.1e moments %.1e %.1e "
      "(loss %.3f to %.3f)\n",
      worst.loss, worst.norm, worst.gradient, worst.weight, worst.first_moment, worst.second_moment,
      outcome.losses.front(), outcome.losses.back());
}

/// FP64 on ranks and reference: everything within 1e-9 after each of 20 steps.
inline void ExpectParity(const ParityRun& run) {
  const ParityOutcome outcome = RunParity(run, at::kDouble);
  PrintWorst(outcome);
  EXPECT_LT(outcome.worst().worst(), 1e-9);
  EXPECT_LT(outcome.gathered_weight, 1e-9);
  EXPECT_THAT(outcome.missing, testing::IsEmpty());
}

inline void ExpectParity(const plan::Job& job) {
  ExpectParity({.job = job, .training = ParityTraining()});
}

}  // namespace isthmus::tests
