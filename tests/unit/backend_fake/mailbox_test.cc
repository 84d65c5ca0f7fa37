#include "backend/fake/mailbox.h"

#include <thread>

#include <gtest/gtest.h>

namespace isthmus::backend {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLong = 60s;

TEST(CensusTest, FindsThatNobodyCanMove) {
  Census census(2);
  EXPECT_FALSE(census.Sleep());
  census.Wake();
  EXPECT_FALSE(census.Sleep());
  EXPECT_TRUE(census.Sleep());
}

TEST(CensusTest, IsNoDeadlockWhenAllAreDone) {
  Census census(2);
  EXPECT_FALSE(census.Leave());
  EXPECT_FALSE(census.Leave());
}

TEST(CensusTest, IsADeadlockWhenTheLastAwakeLeavesSleepers) {
  Census census(2);
  EXPECT_FALSE(census.Sleep());
  EXPECT_TRUE(census.Leave());
}

TEST(MailboxTest, HandsOutInTheOrderDelivered) {
  Census census(1);
  Mailbox mailbox(census);
  mailbox.Deliver({.index = 7});
  mailbox.Deliver({.kind = Completion::Kind::kMeeting, .index = 3});
  std::vector<Completion> completions(5);
  EXPECT_EQ(mailbox.Await(kLong, completions), Mailbox::Reply::kDelivered);
  ASSERT_EQ(completions.size(), 2U);
  EXPECT_EQ(completions[0].index, 7U);
  EXPECT_EQ(completions[1].index, 3U);
}

TEST(MailboxTest, SaysAtOnceThatNobodyCanDeliver) {
  Census census(1);
  Mailbox mailbox(census);
  std::vector<Completion> completions;
  EXPECT_EQ(mailbox.Await(kLong, completions), Mailbox::Reply::kAllSleep);
}

TEST(MailboxTest, TimesOutWhileAnotherRankIsAwake) {
  Census census(2);
  Mailbox mailbox(census);
  std::vector<Completion> completions;
  EXPECT_EQ(mailbox.Await(1ms, completions), Mailbox::Reply::kTimedOut);
  // Awake again after it: the other rank may fall asleep and wait for this one.
  EXPECT_FALSE(census.Sleep());
}

TEST(MailboxTest, StaysStopped) {
  Census census(2);
  Mailbox mailbox(census);
  mailbox.Deliver({.index = 1});
  mailbox.Stop();
  std::vector<Completion> completions;
  EXPECT_EQ(mailbox.Await(kLong, completions), Mailbox::Reply::kStopped);
  EXPECT_EQ(mailbox.Await(kLong, completions), Mailbox::Reply::kStopped);
}

// Two ranks answer each other 2,000 times; each sleeps whenever it waits. A lost wake-up would hang
// or be taken for a deadlock.
TEST(MailboxTest, LosesNoWakeUp) {
  constexpr std::uint32_t kRounds = 2000;
  Census census(2);
  Mailbox boxes[2] = {Mailbox(census), Mailbox(census)};
  std::uint32_t num_received[2] = {0, 0};
  const auto play = [&](int self) {
    std::vector<Completion> completions;
    while (num_received[self] < kRounds) {
      if (boxes[self].Await(kLong, completions) != Mailbox::Reply::kDelivered) break;
      for (const Completion& completion : completions) {
        ++num_received[self];
        if (completion.index + 1 < 2 * kRounds) {
          boxes[1 - self].Deliver({.index = completion.index + 1});
        }
      }
    }
    (void)census.Leave();
  };
  boxes[0].Deliver({.index = 0});
  {
    const std::jthread first(play, 0);
    const std::jthread second(play, 1);
  }
  EXPECT_EQ(num_received[0], kRounds);
  EXPECT_EQ(num_received[1], kRounds);
}

}  // namespace
}  // namespace isthmus::backend
