#include "backend/fake/channel.h"

#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::backend {
namespace {

using namespace std::chrono_literals;
using base::Bytes;
using testing::ElementsAre;

/// A channel from rank 0 to rank 1 with the mailboxes of both.
class ChannelTest : public testing::Test {
 protected:
  void Send(std::int64_t bytes, std::uint32_t transfer) {
    channel_.Post(Channel::Side::kSend,
                  {.bytes = Bytes{bytes}, .mailbox = &sender_, .transfer = transfer});
  }
  void Receive(std::int64_t bytes, std::uint32_t transfer) {
    channel_.Post(Channel::Side::kReceive,
                  {.bytes = Bytes{bytes}, .mailbox = &receiver_, .transfer = transfer});
  }
  /// What has been delivered so far. A third rank is awake for ever, so that waiting isn't a
  /// deadlock.
  static std::vector<std::uint32_t> Delivered(Mailbox& mailbox) {
    std::vector<Completion> completions;
    (void)mailbox.Await(0ms, completions);
    std::vector<std::uint32_t> transfers;
    for (const Completion& completion : completions) transfers.push_back(completion.index);
    return transfers;
  }

  RunClock clock_;
  Census census_{3};
  Mailbox sender_{census_};
  Mailbox receiver_{census_};
  Channel channel_{base::Rank{0}, base::Rank{1}, clock_};
};

TEST_F(ChannelTest, NeverBuffersASend) {
  Send(64, 5);
  EXPECT_THAT(Delivered(sender_), ElementsAre());
  EXPECT_EQ(channel_.num_waiting(Channel::Side::kSend), 1U);
  EXPECT_THAT(channel_.messages(), ElementsAre());
  Receive(64, 9);
  EXPECT_THAT(Delivered(sender_), ElementsAre(5));
  EXPECT_THAT(Delivered(receiver_), ElementsAre(9));
  EXPECT_EQ(channel_.num_waiting(Channel::Side::kSend), 0U);
  EXPECT_THAT(channel_.messages(), ElementsAre(Bytes{64}));
}

TEST_F(ChannelTest, MatchesInOrder) {
  Receive(1, 10);
  Receive(2, 11);
  Receive(3, 12);
  Send(1, 20);
  Send(2, 21);
  EXPECT_THAT(Delivered(receiver_), ElementsAre(10, 11));
  EXPECT_THAT(Delivered(sender_), ElementsAre(20, 21));
  EXPECT_EQ(channel_.num_waiting(Channel::Side::kReceive), 1U);
  EXPECT_THAT(channel_.messages(), ElementsAre(Bytes{1}, Bytes{2}));
}

TEST_F(ChannelTest, RefusesMessagesOfDifferentSizes) {
  Receive(96, 0);
  try {
    Send(64, 0);
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "message 0 from rank 0 to rank 1: 64 bytes sent, 96 awaited");
  }
}

// 1,000 messages, both sides as fast as they can: all match, in order, none twice.
TEST_F(ChannelTest, MatchesUnderConcurrentPosts) {
  constexpr int kMessages = 1000;
  {
    const std::jthread sending([this] {
      for (int index = 0; index < kMessages; ++index) {
        Send(index + 1, static_cast<std::uint32_t>(index));
      }
    });
    const std::jthread receiving([this] {
      for (int index = 0; index < kMessages; ++index) {
        Receive(index + 1, static_cast<std::uint32_t>(index));
      }
    });
  }
  std::vector<std::uint32_t> in_order;
  std::vector<Bytes> sizes;
  for (int index = 0; index < kMessages; ++index) {
    in_order.push_back(static_cast<std::uint32_t>(index));
    sizes.emplace_back(index + 1);
  }
  EXPECT_EQ(channel_.messages(), sizes);
  EXPECT_EQ(Delivered(sender_), in_order);
  EXPECT_EQ(Delivered(receiver_), in_order);
}

}  // namespace
}  // namespace isthmus::backend
