// What a communicator asks of c10d, from a backend that only notes it.

#include "backend/torch/comm/communicator.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/comm/communicators.h"
#include "base/error.h"
#include "tests/support/torch_ranks.h"

namespace isthmus::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NotedWork final : public c10d::Work {
 public:
  explicit NotedWork(std::vector<std::string>& notes) : notes_(notes) {}
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    notes_.emplace_back("wait");
    return true;
  }

 private:
  std::vector<std::string>& notes_;
};

class NotingBackend final : public c10d::Backend {
 public:
  NotingBackend(bool coalesces, std::vector<std::string>& notes)
      : Backend(0, 3), coalesces_(coalesces), notes_(notes) {}
  // NOLINTNEXTLINE(readability-const-return-type): c10d's.
  const std::string getBackendName() const override { return "noting"; }
  bool supportsCoalescing() const override { return coalesces_; }
  void startCoalescing() override { notes_.emplace_back("start"); }
  c10::intrusive_ptr<c10d::Work> endCoalescing() override {
    notes_.emplace_back("end");
    return c10::make_intrusive<NotedWork>(notes_);
  }
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& /*tensors*/, int peer,
                                      int /*tag*/) override {
    notes_.push_back("send to " + std::to_string(peer));
    return Single();
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& /*tensors*/, int peer,
                                      int /*tag*/) override {
    notes_.push_back("receive from " + std::to_string(peer));
    return Single();
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& /*tensors*/,
                                           const c10d::AllreduceOptions& /*options*/) override {
    TORCH_CHECK(false, "the connection is closed");
  }
  void abort() override { notes_.emplace_back("abort"); }

 private:
  // A call within a group has no work of its own, as NCCL's.
  c10::intrusive_ptr<c10d::Work> Single() const {
    if (coalesces_) return nullptr;
    return c10::make_intrusive<NotedWork>(notes_);
  }

  bool coalesces_;
  std::vector<std::string>& notes_;
};

class CommunicatorTest : public ::testing::Test {
 protected:
  Communicator Make(bool coalesces) {
    return {"trio",
            {base::Rank{0}, base::Rank{1}, base::Rank{2}},
            base::Rank{0},
            c10::make_intrusive<NotingBackend>(coalesces, notes_)};
  }
  /// To the next, from the one before, to the one before.
  static std::vector<Message> Messages() {
    return {{.tensor = at::ones({2}), .peer = 1, .sends = true},
            {.tensor = at::ones({2}), .peer = 2, .sends = false},
            {.tensor = at::ones({2}), .peer = 2, .sends = true}};
  }

  std::vector<std::string> notes_;
};

// One launch, which ends for all of them together.
TEST_F(CommunicatorTest, MessagesGoTogetherWhereTheBackendCan) {
  Communicator trio = Make(true);
  std::vector<Pending> pending = trio.Exchange(Messages());
  EXPECT_THAT(notes_, ElementsAre("start", "receive from 2", "send to 1", "send to 2", "end"));
  ASSERT_EQ(pending.size(), 3U);
  for (Pending& one : pending) EXPECT_FALSE(one.is_over());
  notes_.clear();
  pending[1].Wait();
  EXPECT_TRUE(pending[1].is_over());
  EXPECT_FALSE(pending[0].is_over());
  EXPECT_THAT(notes_, ElementsAre("wait"));
}

TEST_F(CommunicatorTest, ReceivesAreInFrontOfSendsWhereItCannot) {
  Communicator trio = Make(false);
  std::vector<CommCall> log;
  trio.RecordCalls(&log);
  std::vector<Pending> pending = trio.Exchange(Messages());
  EXPECT_THAT(notes_, ElementsAre("receive from 2", "send to 1", "send to 2"));
  for (const Pending& one : pending) EXPECT_FALSE(one.is_over() || one.tells_end());
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[0].kind, CommCall::Kind::kReceive);
  EXPECT_EQ(log[0].peer, 2);
  EXPECT_EQ(log[1].bytes, 8);
}

TEST_F(CommunicatorTest, NoMessagesAreNoLaunch) {
  EXPECT_TRUE(Make(true).Exchange({}).empty());
  EXPECT_TRUE(notes_.empty());
}

// What c10d throws at the call is a failure of the world, like what it throws at the wait.
TEST_F(CommunicatorTest, WhatCannotBePostedIsNamed) {
  Communicator trio = Make(false);
  std::string message;
  try {
    trio.AllReduce(at::ones({2}));
  } catch (const base::IoError& error) {
    message = error.what();
  }
  EXPECT_THAT(message, HasSubstr("error: all-reduce of 8 bytes on trio was not posted: the "
                                 "connection is closed"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("frame #")));
}

TEST_F(CommunicatorTest, AbortReachesTheBackend) {
  Make(false).Abort();
  EXPECT_THAT(notes_, ElementsAre("abort"));
}

/// GLOO_SOCKET_IFNAME for the length of a test.
class InterfaceVariable {
 public:
  explicit InterfaceVariable(const char* value) { setenv("GLOO_SOCKET_IFNAME", value, 1); }
  InterfaceVariable(const InterfaceVariable&) = delete;
  InterfaceVariable& operator=(const InterfaceVariable&) = delete;
  ~InterfaceVariable() { unsetenv("GLOO_SOCKET_IFNAME"); }
};

double SumOfTwoRanks(Reach reach) {
  std::vector<double> sums(2);
  tests::RunOnThreads(2, [&](base::Rank rank, const auto& store) {
    GlooFactory gloo(std::chrono::seconds(20), reach);
    Communicator pair("pair", {base::Rank{0}, base::Rank{1}}, rank,
                      gloo.Make(store, rank.value(), 2));
    const at::Tensor value = at::full({1}, 1.0 + rank.value(), at::kDouble);
    pair.AllReduce(value).Wait();
    sums[rank.index()] = value.item<double>();
  });
  EXPECT_EQ(sums[0], sums[1]);
  return sums[0];
}

TEST(GlooFactoryTest, TakesTheInterfaceThatTheVariableNames) {
  const InterfaceVariable loopback("lo");
  EXPECT_EQ(SumOfTwoRanks(Reach::kManyHosts), 3.0);  // 1 + 2
}

TEST(GlooFactoryTest, AnInterfaceThatIsNotThereIsAnError) {
  const InterfaceVariable unknown("no-such-interface");
  EXPECT_ANY_THROW(SumOfTwoRanks(Reach::kOneHost));
}

TEST(GlooFactoryTest, RanksOfOneHostMeet) { EXPECT_EQ(SumOfTwoRanks(Reach::kOneHost), 3.0); }

}  // namespace
}  // namespace isthmus::backend
