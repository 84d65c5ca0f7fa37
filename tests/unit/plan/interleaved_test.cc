// Interleaved 1F1B: what it promises, checked for all small cases.

#include "plan/schedule/interleaved.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plan/schedule/one_f_one_b.h"

namespace isthmus::plan {
namespace {

using Kind = PipelineCall::Kind;
using Calls = std::vector<PipelineCall>;

constexpr int kMostStages = 8;
constexpr int kMostChunks = 4;

/// Calls `check` with every case: stages, chunks, microbatches.
template <typename Check>
void ForAllCases(Check check) {
  for (int stages = 2; stages <= kMostStages; ++stages) {
    for (int chunks = 1; chunks <= kMostChunks; ++chunks) {
      for (int microbatches = 1; microbatches <= 3 * stages + 2; ++microbatches) {
        if (!CanInterleave(stages, chunks, microbatches)) continue;
        SCOPED_TRACE(testing::Message() << stages << " stages of " << chunks << " chunks, "
                                        << microbatches << " microbatches");
        check(stages, chunks, microbatches);
      }
    }
  }
}

Calls CallsOf(int stage, int stages, int chunks, int microbatches) {
  return InterleavedOneForwardOneBackward(
      {.stage = stage, .num_stages = stages, .num_chunks = chunks}, microbatches);
}

TEST(Interleaved, RunsEachMicrobatchOfEachChunkForwardThenBackwardOnce) {
  ForAllCases([](int stages, int chunks, int microbatches) {
    for (int stage = 0; stage < stages; ++stage) {
      std::map<std::pair<int, int>, int> state;  // of a turn: 1 after its forward, 2 at the end
      for (const PipelineCall& call : CallsOf(stage, stages, chunks, microbatches)) {
        if (call.kind == Kind::kExchange) continue;
        int& now = state[{call.turn.chunk, call.turn.microbatch}];
        EXPECT_EQ(now++, call.kind == Kind::kForward ? 0 : 1);
      }
      EXPECT_EQ(state.size(), static_cast<std::size_t>(chunks * microbatches));
      for (const auto& [turn, now] : state) EXPECT_EQ(now, 2);
    }
  });
}

// Megatron's bound: a stage has 2(p-s-1) + (v-1)g + 1 chunks in flight where there are as many, for
// groups of g microbatches.
TEST(Interleaved, KeepsOneMoreThanItsWarmupInFlight) {
  ForAllCases([](int stages, int chunks, int microbatches) {
    if (chunks == 1) return;
    for (int stage = 0; stage < stages; ++stage) {
      int in_flight = 0;
      int most = 0;
      int in_first = 0;
      int most_in_first = 0;
      for (const PipelineCall& call : CallsOf(stage, stages, chunks, microbatches)) {
        if (call.kind == Kind::kExchange) continue;
        const int change = call.kind == Kind::kForward ? 1 : -1;
        most = std::max(most, in_flight += change);
        if (call.turn.chunk == 0) most_in_first = std::max(most_in_first, in_first += change);
      }
      EXPECT_EQ(in_flight, 0);
      const int groups = std::max(1, microbatches / stages);
      const int largest = (microbatches + groups - 1) / groups;
      EXPECT_EQ(most, std::min(2 * (stages - stage - 1) + (chunks - 1) * largest + 1,
                               chunks * microbatches));
      const InterleavedStage at{.stage = stage, .num_stages = stages, .num_chunks = chunks};
      EXPECT_EQ(most, std::min(InterleavedWarmup(at, microbatches) + 1, chunks * microbatches));
      if (stage > 0) continue;
      EXPECT_LE(most_in_first, MostInFirstChunk(at, microbatches));
      if (microbatches % stages != 0) continue;
      EXPECT_EQ(most_in_first, MostInFirstChunk(at, microbatches));
    }
  });
}

TEST(Interleaved, OfOneChunkIsPlainOneForwardOneBackward) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    for (int stage = 0; stage < stages; ++stage) {
      const Calls plain = OneForwardOneBackward(stages - 1 - stage, 9);
      const Calls calls = CallsOf(stage, stages, 1, 9);
      ASSERT_EQ(calls.size(), plain.size());
      for (std::size_t index = 0; index < calls.size(); ++index) {
        EXPECT_EQ(calls[index].kind, plain[index].kind);
        EXPECT_EQ(calls[index].turn, plain[index].turn);
        EXPECT_EQ(calls[index].receive_forward, plain[index].receive_forward);
        EXPECT_EQ(calls[index].send_backward, plain[index].send_backward);
      }
    }
  }
}

// Two groups of two microbatches go through both chunks one after the other.
TEST(Interleaved, OrdersTwoStagesOfTwoChunksAsMegatronDoes) {
  std::vector<std::pair<int, int>> forwards;
  std::vector<std::pair<int, int>> backwards;
  for (const PipelineCall& call : CallsOf(0, 2, 2, 4)) {
    if (call.kind == Kind::kExchange) continue;
    (call.kind == Kind::kForward ? forwards : backwards)
        .emplace_back(call.turn.chunk, call.turn.microbatch);
  }
  using Order = std::vector<std::pair<int, int>>;
  EXPECT_EQ(forwards, (Order{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}}));
  EXPECT_EQ(backwards, (Order{{1, 0}, {1, 1}, {0, 0}, {0, 1}, {1, 2}, {1, 3}, {0, 2}, {0, 3}}));
}

/// Runs the calls of all stages with given times: an exchange posts its messages when what it sends
/// is there, messages of a pair of ranks and a direction match in order, and a message takes `hop`
/// from when both sides have posted it. Strict: nothing else may be on its way.
class PipelineRun {
 public:
  struct Times {
    int forward = 1;  // of a chunk
    int backward = 2;
    int hop = 0;
  };

  PipelineRun(int stages, int chunks, int microbatches, const Times& times)
      : stages_(stages), chunks_(chunks), times_(times) {
    for (int stage = 0; stage < stages; ++stage) {
      StageState& state = states_.emplace_back();
      for (const PipelineCall& call : CallsOf(stage, stages, chunks, microbatches)) {
        (call.kind == Kind::kExchange ? state.exchanges : state.computes).push_back(call);
      }
    }
  }

  /// When the last stage is done; nothing for a deadlock.
  std::optional<int> Makespan() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < stages_; ++stage) {
        while (PostNext(stage)) moved = true;
        while (ComputeNext(stage)) moved = true;
      }
    }
    int end = 0;
    for (const StageState& state : states_) {
      if (state.next_compute < state.computes.size()) return std::nullopt;
      end = std::max(end, state.now);
    }
    return end;
  }

 private:
  enum Way : std::uint8_t { kForward, kBackward };
  /// A message by the virtual stage that needs it.
  using Message = std::tuple<Way, int, int>;  // way, microbatch, virtual stage
  struct StageState {
    std::vector<PipelineCall> exchanges;
    std::vector<PipelineCall> computes;
    std::size_t next_exchange = 0;
    std::size_t next_compute = 0;
    int now = 0;
    int posted = 0;
  };
  struct Posts {
    std::vector<std::pair<int, Message>> sides[2];  // sends, receives: when and what
  };

  int Virtual(int stage, const Turn& turn) const { return turn.chunk * stages_ + stage; }
  bool HasBefore(int stage, const Turn& turn) const { return Virtual(stage, turn) > 0; }
  bool HasBehind(int stage, const Turn& turn) const {
    return Virtual(stage, turn) + 1 < stages_ * chunks_;
  }

  bool PostNext(int stage) {
    StageState& state = states_[static_cast<std::size_t>(stage)];
    if (state.next_exchange == state.exchanges.size()) return false;
    const PipelineCall& call = state.exchanges[state.next_exchange];
    for (const auto& [way, turn] :
         {std::pair{kForward, call.send_forward}, std::pair{kBackward, call.send_backward}}) {
      if (!turn.exists()) continue;
      const auto made = made_.find({way, turn.microbatch, Virtual(stage, turn)});
      if (made == made_.end()) return false;
      state.posted = std::max(state.posted, made->second);
    }
    const int before = (stage + stages_ - 1) % stages_;
    const int behind = (stage + 1) % stages_;
    const auto post = [&](const Turn& turn, bool exists, int from, int to, Way way, int needs) {
      if (turn.exists() && exists) {
        Post(from, to, stage == to, state.posted, {way, turn.microbatch, needs});
      }
    };
    const auto at = [&](const Turn& turn) { return Virtual(stage, turn); };
    const Turn& in = call.receive_forward;
    const Turn& out = call.send_forward;
    const Turn& gradient_in = call.receive_backward;
    const Turn& gradient_out = call.send_backward;
    post(in, HasBefore(stage, in), before, stage, kForward, at(in));
    post(gradient_in, HasBehind(stage, gradient_in), behind, stage, kBackward, at(gradient_in));
    post(out, HasBehind(stage, out), stage, behind, kForward, at(out) + 1);
    post(gradient_out, HasBefore(stage, gradient_out), stage, before, kBackward,
         at(gradient_out) - 1);
    ++state.next_exchange;
    return true;
  }

  void Post(int from, int to, bool receives, int when, const Message& message) {
    Posts& posts = channels_[{from, to}];
    std::vector<std::pair<int, Message>>& ours = posts.sides[receives ? 1 : 0];
    const std::vector<std::pair<int, Message>>& theirs = posts.sides[receives ? 0 : 1];
    ours.emplace_back(when, message);
    if (theirs.size() < ours.size()) return;
    const auto& [other_when, other] = theirs[ours.size() - 1];
    EXPECT_EQ(message, other) << "from " << from << " to " << to;
    arrived_[message] = std::max(when, other_when) + times_.hop;
  }

  bool ComputeNext(int stage) {
    StageState& state = states_[static_cast<std::size_t>(stage)];
    if (state.next_compute == state.computes.size()) return false;
    const PipelineCall& call = state.computes[state.next_compute];
    const Way way = call.kind == Kind::kForward ? kForward : kBackward;
    const Message name{way, call.turn.microbatch, Virtual(stage, call.turn)};
    if (way == kForward ? HasBefore(stage, call.turn) : HasBehind(stage, call.turn)) {
      const auto arrived = arrived_.find(name);
      if (arrived == arrived_.end()) return false;
      state.now = std::max(state.now, arrived->second);
    }
    state.now += way == kForward ? times_.forward : times_.backward;
    made_[name] = state.now;
    ++state.next_compute;
    return true;
  }

  int stages_;
  int chunks_;
  Times times_;
  std::vector<StageState> states_;
  std::map<Message, int> made_;
  std::map<Message, int> arrived_;
  std::map<std::pair<int, int>, Posts> channels_;
};

TEST(Interleaved, EndsUnderRendezvousWithMessagesInOneOrder) {
  ForAllCases([](int stages, int chunks, int microbatches) {
    for (const int hop : {0, 1, 50}) {
      EXPECT_TRUE(PipelineRun(stages, chunks, microbatches, {.hop = hop}).Makespan());
    }
  });
}

// A chunk's forward and backward take 3 units, v·3 for a microbatch on one stage. The bubble is
// (p-1)(F+B)/v = (p-1)·3 units.
TEST(Interleaved, HasTheBubbleOfTheFormula) {
  for (int stages = 2; stages <= kMostStages; ++stages) {
    for (int chunks = 1; chunks <= kMostChunks; ++chunks) {
      for (int groups = 1; groups <= 4; ++groups) {
        const int microbatches = groups * stages;
        EXPECT_EQ(PipelineRun(stages, chunks, microbatches, {}).Makespan(),
                  3 * (chunks * microbatches + stages - 1))
            << stages << " stages of " << chunks << " chunks, " << microbatches << " microbatches";
      }
    }
  }
}

// What 4 more groups of microbatches cost, with messages of 1. With one chunk a microbatch waits
// for its message both ways (with two stages once: the last one sends and asks at the same moment).
// With more chunks there is only compute.
TEST(Interleaved, HidesMessagesThatPlain1F1BWaitsFor) {
  const auto steady = [](int stages, int chunks, const PipelineRun::Times& times) {
    const int longer = PipelineRun(stages, chunks, 8 * stages, times).Makespan().value_or(0);
    const int shorter = PipelineRun(stages, chunks, 4 * stages, times).Makespan().value_or(0);
    return longer - shorter;
  };
  for (int stages = 2; stages <= kMostStages; ++stages) {
    const int microbatches = 4 * stages;
    EXPECT_EQ(steady(stages, 1, {10, 20, 1}), microbatches * (30 + (stages == 2 ? 1 : 2)));
    for (int chunks = 2; chunks <= kMostChunks; ++chunks) {
      EXPECT_EQ(steady(stages, chunks, {10, 20, 1}), microbatches * chunks * 30);
    }
  }
}

TEST(Interleaved, IsNotDefinedForTwoStagesAndUnequalGroups) {
  EXPECT_FALSE(CanInterleave(2, 2, 5));
  EXPECT_TRUE(CanInterleave(2, 2, 3));
  EXPECT_TRUE(CanInterleave(2, 2, 4));
  EXPECT_TRUE(CanInterleave(2, 1, 3));
  EXPECT_TRUE(CanInterleave(3, 2, 4));
  EXPECT_FALSE(CanInterleave(1, 2, 4));
}

}  // namespace
}  // namespace isthmus::plan
