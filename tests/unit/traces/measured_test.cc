#include <algorithm>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/traces/measured_run.h"
#include "traces/check_measured.h"
#include "traces/clock_skew.h"
#include "traces/internal/offset_graph.h"
#include "traces/meetings.h"

namespace isthmus::traces {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(OffsetGraph, DifferencesThatAgreeAreSolvedExactly) {
  // x = 0, 5, -2, 3 and apart from them 4 and 5 with x = 0, 7.
  const std::vector<double> x = internal::SolveOffsets(
      {{0, 1, -5, 3}, {1, 2, 7, 1}, {3, 2, 5, 2}, {0, 3, -3, 1}, {5, 4, 7, 1}}, 6);
  EXPECT_THAT(x, ElementsAre(0, 5, -2, 3, 0, 7));
}

TEST(OffsetGraph, ContradictionsAreSharedByWeight) {
  // A circle 0 - 1 - 2 whose differences x1 - x0 = 1, x2 - x1 = 1, x2 - x0 = 5 lack 3. Of the
  // residuals r each weight · residual is the same flow f: f/1 + f/1 + f/2 = 3, f = 1.2. So
  // x1 = 1 + 1.2, x2 = 5 - 0.6.
  const std::vector<double> x =
      internal::SolveOffsets({{1, 0, 1, 1}, {2, 1, 1, 1}, {2, 0, 5, 2}}, 3);
  EXPECT_THAT(x, ElementsAre(DoubleNear(0, 1e-9), DoubleNear(2.2, 1e-9), DoubleNear(4.4, 1e-9)));
}

TEST(Meetings, AreTheKthOpsOfAGroupAndTheKthMessages) {
  MeasuredRun run;
  for (const std::uint32_t rank : {0U, 1U}) {
    run.Collective(rank, "all_reduce", 0, 0, 10);
    run.Collective(rank, "broadcast", 10, 10, 20);
  }
  run.Transfer(0, true, 20, 20, 30);   // events 4 (its posting) and 5
  run.Transfer(1, false, 20, 20, 30);  // 6 and 7
  const std::vector<Meeting> meetings = FindMeetings(run.trace);
  ASSERT_EQ(meetings.size(), 3);
  EXPECT_THAT(meetings[0].events, ElementsAre(0, 2));
  EXPECT_TRUE(meetings[0].waits_for_all);
  EXPECT_THAT(meetings[1].events, ElementsAre(1, 3));
  EXPECT_FALSE(meetings[1].waits_for_all) << "its root need not wait";
  EXPECT_THAT(meetings[2].events, ElementsAre(5, 7));
  EXPECT_TRUE(meetings[2].is_message);
}

TEST(Meetings, WithoutBytesOrAnEventDontTakePlace) {
  MeasuredRun run;
  for (const std::uint32_t rank : {0U, 1U}) run.Collective(rank, "all_reduce", 0, 0, 0);
  for (RoleRecord& role : run.trace.header.roles) role.ops[0].bytes = 0;
  run.Collective(0, "all_reduce", 0, 0, 10);
  EXPECT_THAT(FindMeetings(run.trace), IsEmpty());
}

TEST(MeetPartners, StartsWhenTheLastCame) {
  MeasuredRun run;
  run.Collective(0, "all_reduce", 10, 10, 50);
  run.Collective(1, "all_reduce", 30, 30, 52);
  run.Transfer(0, true, 60, 60, 65);   // gone before the receiver asked
  run.Transfer(1, false, 80, 80, 85);  // there when asked for
  MeetPartners(run.trace);
  EXPECT_EQ(run.Find(0, 0).start_ps, 30);
  EXPECT_EQ(run.Find(1, 0).start_ps, 30);
  EXPECT_EQ(run.Find(0, 1, 1).start_ps, 60);
  EXPECT_EQ(run.Find(1, 1, 1).start_ps, 80);
  const std::vector<Event> once = run.trace.events;
  MeetPartners(run.trace);
  EXPECT_EQ(run.trace.events, once);
}

TEST(ClockSkew, IsTheMedianOfWhatEndsTogether) {
  // Rank 1's clock is 1000 ahead; one of three ends comes 400 late.
  MeasuredRun run;
  for (int index = 0; index < 3; ++index) {
    const std::int64_t at = 10'000 * index;
    run.Collective(0, "all_reduce", at, at, at + 500);
    run.Collective(1, "all_reduce", at + 1000, at + 1000, at + 1500 + (index == 1 ? 400 : 0));
  }
  const ClockSkew skew = EstimateClockSkew(run.trace);
  EXPECT_TRUE(skew.has_offsets);
  EXPECT_EQ(skew.num_samples, 3);
  EXPECT_EQ(skew.clocks[0].offset_ps, 0);
  EXPECT_EQ(skew.clocks[1].offset_ps, 1000);
  EXPECT_EQ(skew.Correct(1, 11'000), 10'000);
}

TEST(ClockSkew, KeepsReceivesAfterTheirSends) {
  // Two messages whose ends say that rank 1's clock is 10,000 behind, but the second was received,
  // by that, 2000 before it was sent: each rank gives way by half. Rank 0 is the reference, so all
  // of it shows on rank 1.
  MeasuredRun run;
  run.Transfer(0, true, 20'000, 20'000, 30'000);
  run.Transfer(1, false, 10'000, 10'000, 20'000);
  run.Transfer(0, true, 40'000, 40'000, 50'000);
  run.Transfer(1, false, 30'000, 30'000, 40'000);
  run.Transfer(0, true, 62'000, 62'000, 62'500);
  run.Transfer(1, false, 48'000, 48'000, 50'000);
  const ClockSkew skew = EstimateClockSkew(run.trace);
  EXPECT_NEAR(skew.clocks[1].offset_ps, -12'000, 1);
}

TEST(ClockSkew, OfSendersWithoutEndsComesFromCollectives) {
  // Rank 1's clock is 5000 ahead. What rank 0 sends at 1000 is there at 1700, that is 6700 there;
  // rank 0 can only tell that it waited for it at 90,000.
  MeasuredRun run;
  run.trace.header.classes[1].node = 1;
  run.Transfer(0, true, 1000, 1000, 90'000);
  run.Transfer(1, false, 6500, 6500, 6700);
  for (const std::int64_t at : {10'000, 20'000, 30'000}) {
    run.Collective(0, "all_reduce", at, at, at + 500);
    run.Collective(1, "all_reduce", at + 5000, at + 5000, at + 5500);
  }
  const ClockSkew skew = PutSendersOnOneClock(run.trace);
  // Messages weigh little beside collectives.
  EXPECT_NEAR(skew.clocks[1].offset_ps, 5000, 10);
  // Time 0 is when the first rank came: 1000.
  EXPECT_NEAR(static_cast<double>(run.Find(0, 0, 1).end_ps), 700, 10);
  EXPECT_EQ(run.Find(0, 0, 1).end_ps, run.Find(1, 0, 1).end_ps);
}

// Rank 1 is over late by 200, 300 and 110, which no order contradicts.
MeasuredRun LateRun() {
  MeasuredRun run;
  std::int64_t at = 0;
  for (const std::int64_t late : {200, 300, 110}) {
    at += 10'000;
    run.Collective(0, "all_reduce", at, at, at + 2000);
    run.Collective(1, "all_reduce", at, at, at + 2000 + late);
  }
  return run;
}

TEST(ClockSkew, RanksOfOneNodeThatAreLateHaveOneClock) {
  const ClockSkew skew = EstimateClockSkew(LateRun().trace);
  EXPECT_FALSE(skew.has_offsets);
  EXPECT_EQ(skew.clocks[1].offset_ps, 0);
  EXPECT_EQ(skew.residual_ps, 200);
}

TEST(ClockSkew, OfTwoNodesIsTakenWhenItExplainsTheEnds) {
  MeasuredRun run = LateRun();
  run.trace.header.classes[1].node = 1;
  const ClockSkew skew = EstimateClockSkew(run.trace);
  EXPECT_TRUE(skew.has_offsets);
  EXPECT_EQ(skew.clocks[1].offset_ps, 200);
  EXPECT_EQ(skew.residual_ps, 90);
}

TEST(ClockSkew, ThatExplainsNothingIsDropped) {
  // Ends that differ by noise, the median by 100 of up to 900.
  MeasuredRun run;
  run.trace.header.classes[1].node = 1;
  std::int64_t at = 0;
  for (const std::int64_t late : {-900, -500, 100, 600, 900}) {
    at += 10'000;
    run.Collective(0, "all_reduce", at, at, at + 2000);
    run.Collective(1, "all_reduce", at, at, at + 2000 + late);
  }
  const ClockSkew skew = EstimateClockSkew(run.trace);
  EXPECT_FALSE(skew.has_offsets);
  EXPECT_EQ(skew.clocks[1].offset_ps, 0);
}

// A sound run, of which each test spoils one thing.
class CheckMeasuredTest : public testing::Test {
 protected:
  CheckMeasuredTest() {
    for (const std::uint32_t rank : {0U, 1U}) {
      run_.Compute(rank, 0, 10'000);
      run_.Collective(rank, "all_reduce", 10'000, 10'000, 20'000);
      run_.Collective(rank, "all_gather", 20'000, 20'000, 30'000);
      run_.Compute(rank, 30'000, 40'000, {{.op = 2}});
    }
    run_.Transfer(0, true, 40'000, 40'000, 50'000);
    run_.Transfer(1, false, 40'000, 40'000, 50'000);
  }

  void ExpectOnly(MeasuredProblem::Kind kind, const std::string& words) {
    const std::vector<MeasuredProblem> problems = CheckMeasured(run_.trace);
    ASSERT_EQ(problems.size(), 1);
    EXPECT_EQ(problems[0].kind, kind);
    EXPECT_THAT(problems[0].text, HasSubstr(words));
  }

  MeasuredRun run_;
};

TEST_F(CheckMeasuredTest, FindsNothingInASoundRun) {
  EXPECT_TRUE(CheckMeasured(run_.trace).empty());
}

TEST_F(CheckMeasuredTest, FindsOpsThatBeganBeforeTheirValues) {
  run_.Find(1, 3).issue_ps = 28'000;
  ExpectOnly(MeasuredProblem::Kind::kDependency,
             "rank 1: op 3 'forward' began 0.002 us before op 2 'all_gather'");
  run_.Find(1, 3).issue_ps = 29'500;  // below the clock's resolution
  EXPECT_TRUE(CheckMeasured(run_.trace).empty());
}

TEST_F(CheckMeasuredTest, FindsMembersOutOfStep) {
  std::swap(run_.Find(1, 1).issue_ps, run_.Find(1, 2).issue_ps);
  const std::vector<MeasuredProblem> problems = CheckMeasured(run_.trace);
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(), [](const auto& problem) {
    return problem.kind == MeasuredProblem::Kind::kSequence;
  }));
}

TEST_F(CheckMeasuredTest, FindsReceivesBeforeTheirSends) {
  run_.Find(0, 4, 1).issue_ps = 53'000;
  ExpectOnly(MeasuredProblem::Kind::kCausality, "was over 0.003 us before rank 0: op 4 'send'");
}

TEST_F(CheckMeasuredTest, FindsWhatIsMissing) {
  std::erase_if(run_.trace.events,
                [](const Event& event) { return event.rank_class == 0 && event.op == 0; });
  ExpectOnly(MeasuredProblem::Kind::kMissing, "rank 0: op 0 'forward' has no event");
}

}  // namespace
}  // namespace isthmus::traces
