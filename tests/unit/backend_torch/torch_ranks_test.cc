#include "tests/support/torch_ranks.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/support/program_jobs.h"

namespace isthmus::tests {
namespace {

plan::Program TwoByTwo() {
  plan::Module llm = LlmOf({.tp = 2, .cp = 2}, 2);
  return plan::Build(JobOf(plan::Placement::kColocated, {llm}));
}

TEST(TorchRanks, SumOverTheGroupsOfTheGrid) {
  // Ranks are cp · 2 + tp. Over tp: 0+1 = 1 and 2+3 = 5; over cp: 0+2 = 2 and 1+3 = 4.
  const plan::Program program = TwoByTwo();
  std::vector<std::vector<double>> sums(4);
  RunOnRanks(program, [&](base::Rank rank, backend::Communicators& communicators) {
    for (const plan::AxisSet axis : {plan::kTp, plan::kCp}) {
      const at::Tensor value = at::full({1}, double(rank.value()), at::kDouble);
      communicators.Inside(0, axis).AllReduce(value).Wait();
      sums[rank.index()].push_back(value.item<double>());
    }
  });
  EXPECT_EQ(sums, (std::vector<std::vector<double>>{{1, 2}, {1, 4}, {5, 2}, {5, 4}}));
}

TEST(TorchRanks, TheFirstExceptionOfARankReachesTheTest) {
  EXPECT_THROW(RunOnThreads(3,
                            [](base::Rank rank, const auto&) {
                              if (rank.value() == 1) throw std::runtime_error("rank 1");
                            }),
               std::runtime_error);
}

TEST(TorchRanks, CallsAreRecordedWithTheBytesOfThePlan) {
  const plan::Program program = TwoByTwo();
  std::vector<backend::CommCall> log;
  RunOnRanks(program, [&](base::Rank rank, backend::Communicators& communicators) {
    if (rank.value() == 0) communicators.RecordCalls(&log);
    communicators.EnterOp(7);
    const at::Tensor part = at::ones({3, 2}, at::kFloat);
    const at::Tensor whole = at::empty({6, 2}, at::kFloat);
    communicators.Inside(0, plan::kTp).AllGather(whole, part).Wait();
  });
  // All-gather: the whole buffer, 6 · 2 · 4 B.
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].collective, plan::CollectiveKind::kAllGather);
  EXPECT_EQ(log[0].bytes, 48);
  EXPECT_EQ(log[0].op, 7U);
  EXPECT_EQ(log[0].group, "llm tp");
}

}  // namespace
}  // namespace isthmus::tests
