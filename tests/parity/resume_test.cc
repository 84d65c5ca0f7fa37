#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backend/torch/checkpoint/checkpoint.h"
#include "backend/torch/checkpoint/training_checkpoint.h"
#include "base/error.h"
#include "tests/parity/expect_parity.h"
#include "tests/support/test_folder.h"

namespace isthmus::tests {
namespace {

using backend::Executor;
using plan::Placement;

ParityRun RunOf(const plan::Job& job) { return {.job = job, .training = ParityTraining()}; }

plan::Job LayoutA(plan::DType precision = plan::DType::kFp64) {
  return ParityJob(Placement::kColocated,
                   {TinyEncoder("vision", {.dp = 4}), TinyLlm({.tp = 2, .dp = 2})}, precision);
}
plan::Job LayoutB(plan::DType precision = plan::DType::kFp64) {
  return ParityJob(Placement::kNonColocated,
                   {TinyEncoder("vision", {.dp = 2}), TinyLlm({.tp = 1, .pp = 2})}, precision);
}

/// 10 steps of `first`, a checkpoint, and 10 more of `second`: the losses of the latter.
std::vector<double> TenAndTen(const plan::Job& first, const plan::Job& second,
                              const std::filesystem::path& folder) {
  const std::uint64_t seed = ParityTraining().seed;
  RunExecutors(RunOf(first), [&](const plan::Program& program, base::Rank, Executor& executor,
                                 backend::Communicators& communicators) {
    for (int step = 0; step < 10; ++step) executor.RunStep(step);
    backend::SaveTraining(folder, {program, seed}, 10, executor, communicators);
  });
  std::vector<double> losses;
  RunExecutors(RunOf(second), [&](const plan::Program& program, base::Rank rank, Executor& executor,
                                  backend::Communicators& communicators) {
    const std::int64_t done =
        backend::ResumeTraining(folder, {program, seed}, executor, communicators);
    for (std::int64_t step = done; step < 20; ++step) {
      const double loss = executor.RunStep(step).loss;
      if (rank.value() == 0) losses.push_back(loss);
    }
  });
  return losses;
}

double WorstOfLastTen(const std::vector<double>& resumed, const std::vector<double>& straight) {
  double worst = resumed.size() == 10 && straight.size() == 20 ? 0.0 : INFINITY;
  for (std::size_t step = 0; step < resumed.size(); ++step) {
    const double expected = straight[10 + step];
    worst = std::max(worst, std::abs(resumed[step] - expected) / expected);
  }
  return worst;
}

TEST(Resume, TenStepsOnAnotherLayoutAreTheLastTenOfTwenty) {
  const std::vector<double> straight = LossesOf(RunOf(LayoutB()));
  const double there =
      WorstOfLastTen(TenAndTen(LayoutA(), LayoutB(), TestFolder() / "there"), straight);
  const double back =
      WorstOfLastTen(TenAndTen(LayoutB(), LayoutA(), TestFolder() / "back"), straight);
  std::printf("[  PARITY  ] resumed on another layout: loss %.1e and %.1e\n", there, back);
  EXPECT_LT(there, 1e-9);
  EXPECT_LT(back, 1e-9);
}

TEST(Resume, TheSameLayoutGoesOnInBf16AsIfNothingHadHappened) {
  const plan::Job job = LayoutA(plan::DType::kBf16);
  const std::vector<double> straight = LossesOf(RunOf(job));
  EXPECT_EQ(WorstOfLastTen(TenAndTen(job, job, TestFolder() / "bf16"), straight), 0.0);
}

TEST(Resume, AnotherModelIsRefusedOnEveryRank) {
  const std::filesystem::path folder = TestFolder() / "other";
  TenAndTen(LayoutA(), LayoutA(), folder);
  plan::Job other = LayoutA();
  other.modules[1].transformer.ffn_hidden *= 2;
  std::vector<int> refused(4, 0);
  RunExecutors(RunOf(other), [&](const plan::Program& program, base::Rank rank, Executor& executor,
                                 backend::Communicators& communicators) {
    try {
      backend::ResumeTraining(folder, {program, ParityTraining().seed}, executor, communicators);
    } catch (const base::Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("the checkpoint of another model"));
      refused[rank.index()] = 1;
    }
  });
  EXPECT_EQ(refused, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace isthmus::tests
