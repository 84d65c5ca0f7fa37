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

/// Lanes of tp 2 straddle the shards, whose stages are ranks {0, 2} and {1, 3}. Rank 1 gets its
/// tokens from rank 2 in an all-to-all, so for rank 2 the broadcast over its stages is in the
/// second group of the edge, for rank 0 in the first; they meet all the same.
TEST(TorchRanks, MeetInAGroupThatTheyNumberDifferently) {
  const plan::Program program =
      plan::Build(JobOf(plan::Placement::kColocated,
                        {EncoderOf("vision", {.tp = 2, .dp = 2}), LlmOf({.pp = 2, .dp = 2}, 2)},
                        /*num_microbatches=*/1));
  std::vector<int> numbers(4, -1);
  std::vector<double> sums(4);
  RunOnRanks(program, [&](base::Rank rank, backend::Communicators& communicators) {
    const std::vector<plan::GroupRef>& groups = program.role(rank).groups;
    const std::vector<base::Rank> stages = program.modules[1].grid.Group(rank, plan::kPp);
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      if (groups[group].kind != plan::GroupRef::Kind::kBoundary) continue;
      if (program.Members(rank, groups[group]) != stages) continue;
      numbers[rank.index()] = groups[group].index;
      const at::Tensor value = at::full({1}, double(rank.value()), at::kDouble);
      communicators.Of(group).AllReduce(value).Wait();
      sums[rank.index()] = value.item<double>();
    }
  });
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(sums, (std::vector<double>{2, 4, 2, 4}));
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
