#include "backend/fake/communicator.h"

#include <deque>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/model/kernel.h"

namespace isthmus::backend {
namespace {

using namespace std::chrono_literals;
using base::Bytes;
using base::Rank;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr auto kAllReduce = static_cast<std::uint8_t>(plan::CollectiveKind::kAllReduce);
constexpr auto kAllGather = static_cast<std::uint8_t>(plan::CollectiveKind::kAllGather);
constexpr int kMembers = 3;

/// Ranks 4, 2 and 6 in this order, with a mailbox each.
class CommunicatorTest : public testing::Test {
 protected:
  CommunicatorTest() {
    for (int index = 0; index < kMembers; ++index) mailboxes_.emplace_back(census_);
  }
  void JoinAll() {
    for (const Rank member : members_) communicator_.Join(member, members_);
  }
  void Come(std::size_t member, std::uint32_t op, std::uint8_t kind, std::int64_t bytes) {
    communicator_.Arrive({.rank = members_[member],
                          .kind = kind,
                          .bytes = Bytes{bytes},
                          .mailbox = &mailboxes_[member],
                          .op = op});
  }
  std::vector<std::uint32_t> Delivered(std::size_t member) {
    std::vector<Completion> completions;
    (void)mailboxes_[member].Await(0ms, completions);
    std::vector<std::uint32_t> ops;
    for (const Completion& completion : completions) ops.push_back(completion.index);
    return ops;
  }
  template <typename Action>
  static std::string ErrorOf(Action action) {
    try {
      action();
    } catch (const base::Error& error) {
      return error.what();
    }
    return "no error";
  }

  const std::vector<Rank> members_{Rank{4}, Rank{2}, Rank{6}};
  RunClock clock_;
  Census census_{kMembers + 1};  // one rank is awake for ever, so that waiting isn't a deadlock
  std::deque<Mailbox> mailboxes_;
  Communicator communicator_{"llm dp", plan::OpKind::kCollective, members_, clock_};
};

TEST_F(CommunicatorTest, IsOverWhenTheLastMemberHasCome) {
  JoinAll();
  Come(0, 10, kAllReduce, 256);
  Come(2, 30, kAllReduce, 256);
  EXPECT_THAT(Delivered(0), ElementsAre());
  EXPECT_EQ(communicator_.num_meetings(), 0);
  Come(1, 20, kAllReduce, 256);
  EXPECT_THAT(Delivered(0), ElementsAre(10));
  EXPECT_THAT(Delivered(1), ElementsAre(20));
  EXPECT_THAT(Delivered(2), ElementsAre(30));
}

// A meeting's bytes count once, whatever the number of members.
TEST_F(CommunicatorTest, CountsMeetingsAndBytesByKind) {
  JoinAll();
  for (std::size_t member = 0; member < kMembers; ++member) Come(member, 0, kAllReduce, 256);
  for (std::size_t member = 0; member < kMembers; ++member) Come(member, 1, kAllGather, 100);
  for (std::size_t member = 0; member < kMembers; ++member) Come(member, 2, kAllReduce, 44);
  EXPECT_EQ(communicator_.num_meetings(), 3);
  EXPECT_THAT(communicator_.bytes_by_kind(),
              ElementsAre(Pair(kAllReduce, Bytes{300}), Pair(kAllGather, Bytes{100})));
  EXPECT_THAT(communicator_.joined(), ElementsAre(Rank{2}, Rank{4}, Rank{6}));
}

TEST_F(CommunicatorTest, RefusesMembersThatComeForSomethingElse) {
  JoinAll();
  Come(0, 10, kAllReduce, 256);
  EXPECT_THAT(ErrorOf([&] { Come(1, 20, kAllReduce, 128); }),
              HasSubstr("group llm dp: op 20 of rank 2 (all_reduce, 128 bytes) meets op 10 of rank "
                        "4 (all_reduce, 256 bytes)"));
  EXPECT_THAT(ErrorOf([&] { Come(1, 20, kAllGather, 256); }), HasSubstr("(all_gather, 256 bytes)"));
}

TEST_F(CommunicatorTest, RefusesAMemberThatIsThereAlready) {
  JoinAll();
  Come(0, 10, kAllReduce, 256);
  EXPECT_EQ(ErrorOf([&] { Come(0, 11, kAllReduce, 256); }),
            "group llm dp: rank 4 comes with op 11 while its op 10 is not over");
}

TEST_F(CommunicatorTest, RefusesRanksThatSeeOtherMembers) {
  communicator_.Join(Rank{2}, members_);
  EXPECT_EQ(ErrorOf([&] {
              communicator_.Join(Rank{4}, {Rank{4}, Rank{2}});
            }),
            "group llm dp: rank 4 counts other ranks among its members than rank 2 does");
  EXPECT_EQ(ErrorOf([&] { communicator_.Join(Rank{5}, members_); }),
            "group llm dp: rank 5 is no member");
}

// Each member goes on to the next meeting as soon as it is told that the one before is over.
TEST_F(CommunicatorTest, MeetsFromManyThreads) {
  constexpr std::uint32_t kMeetings = 500;
  JoinAll();
  {
    std::vector<std::jthread> threads;
    for (std::size_t member = 0; member < kMembers; ++member) {
      threads.emplace_back([this, member] {
        std::vector<Completion> completions;
        for (std::uint32_t meeting = 0; meeting < kMeetings; ++meeting) {
          Come(member, meeting, kAllReduce, 8);
          ASSERT_EQ(mailboxes_[member].Await(60s, completions), Mailbox::Reply::kDelivered);
          ASSERT_EQ(completions.size(), 1U);
          ASSERT_EQ(completions[0].index, meeting);
        }
      });
    }
  }
  EXPECT_EQ(communicator_.num_meetings(), kMeetings);
  // 500 meetings of 8 bytes.
  EXPECT_THAT(communicator_.bytes_by_kind(), ElementsAre(Pair(kAllReduce, Bytes{4000})));
}

}  // namespace
}  // namespace isthmus::backend
