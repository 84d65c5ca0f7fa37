// Schedules are pure functions: what they promise is checked for all small cases.

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "plan/schedule/graph_aware.h"
#include "plan/schedule/one_f_one_b.h"

namespace isthmus::plan {
namespace {

using Kind = PipelineCall::Kind;
using Depths = std::vector<std::vector<int>>;

constexpr int kMostStages = 6;
constexpr int kMostMicrobatches = 9;

TEST(OneForwardOneBackward, RunsEachMicrobatchForwardThenBackwardOnce) {
  for (int depth = 0; depth < kMostStages; ++depth) {
    for (int microbatches = 1; microbatches <= kMostMicrobatches; ++microbatches) {
      std::vector<int> forwards;
      std::vector<int> backwards;
      for (const PipelineCall& call : OneForwardOneBackward(depth, microbatches)) {
        if (call.kind == Kind::kForward) forwards.push_back(call.turn.microbatch);
        if (call.kind != Kind::kBackward) continue;
        backwards.push_back(call.turn.microbatch);
        EXPECT_GE(forwards.size(), backwards.size());
      }
      std::vector<int> all;
      for (int microbatch = 0; microbatch < microbatches; ++microbatch) all.push_back(microbatch);
      EXPECT_EQ(forwards, all);
      EXPECT_EQ(backwards, all);
    }
  }
}

TEST(OneForwardOneBackward, KeepsOneMoreThanItsWarmupInFlight) {
  for (int depth = 0; depth < kMostStages; ++depth) {
    for (int microbatches = 1; microbatches <= kMostMicrobatches; ++microbatches) {
      int in_flight = 0;
      int most = 0;
      for (const PipelineCall& call : OneForwardOneBackward(depth, microbatches)) {
        if (call.kind == Kind::kForward) most = std::max(most, ++in_flight);
        if (call.kind == Kind::kBackward) --in_flight;
      }
      EXPECT_EQ(most, std::min(depth + 1, microbatches));
      EXPECT_EQ(in_flight, 0);
    }
  }
}

/// Microbatches that one member of the calls names, in order.
std::vector<int> Named(const std::vector<PipelineCall>& calls, Turn PipelineCall::*member) {
  std::vector<int> microbatches;
  for (const PipelineCall& call : calls) {
    if (call.kind == Kind::kExchange && (call.*member).exists())
      microbatches.push_back((call.*member).microbatch);
  }
  return microbatches;
}

TEST(OneForwardOneBackward, NeighboursExchangeTheSameMicrobatchesInTheSameOrder) {
  for (int stages = 2; stages <= kMostStages; ++stages) {
    for (int microbatches = 1; microbatches <= kMostMicrobatches; ++microbatches) {
      for (int stage = 0; stage + 1 < stages; ++stage) {
        const auto front = OneForwardOneBackward(stages - 1 - stage, microbatches);
        const auto behind = OneForwardOneBackward(stages - 2 - stage, microbatches);
        EXPECT_EQ(Named(front, &PipelineCall::send_forward),
                  Named(behind, &PipelineCall::receive_forward));
        EXPECT_EQ(Named(behind, &PipelineCall::send_backward),
                  Named(front, &PipelineCall::receive_backward));
      }
    }
  }
}

/// When stage 0 has finished its last backward, with forwards of 1 and backwards of 2 time units,
/// and free exchanges that wait for the tensors they bring.
int Makespan(int stages, int microbatches) {
  std::vector<std::vector<PipelineCall>> calls;
  for (int stage = 0; stage < stages; ++stage) {
    calls.push_back(OneForwardOneBackward(stages - 1 - stage, microbatches));
  }
  // done[way][stage][microbatch]; -1: not yet.
  std::array<std::vector<std::vector<int>>, 2> done;
  done.fill({static_cast<std::size_t>(stages),
             std::vector<int>(static_cast<std::size_t>(microbatches), -1)});
  std::vector<std::size_t> next(static_cast<std::size_t>(stages), 0);
  std::vector<int> now(static_cast<std::size_t>(stages), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < calls.size(); ++stage) {
      for (; next[stage] < calls[stage].size(); ++next[stage], moved = true) {
        const PipelineCall& call = calls[stage][next[stage]];
        if (call.kind == Kind::kExchange) continue;
        const bool forward = call.kind == Kind::kForward;
        const auto microbatch = static_cast<std::size_t>(call.turn.microbatch);
        const bool is_first = forward ? stage == 0 : stage + 1 == calls.size();
        const std::size_t from = forward ? stage - 1 : stage + 1;
        const int ready = is_first ? 0 : done[forward ? 0 : 1][from][microbatch];
        if (ready < 0) break;
        now[stage] = std::max(now[stage], ready) + (forward ? 1 : 2);
        done[forward ? 0 : 1][stage][microbatch] = now[stage];
      }
    }
  }
  return now[0];
}

// Every microbatch takes 3 units on each of p stages; the bubble adds p - 1 of them: (m + p - 1)·3,
// so its fraction is (p-1)/(m+p-1).
TEST(OneForwardOneBackward, HasTheBubbleOfTheFormula) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    for (int microbatches = stages; microbatches <= kMostMicrobatches; ++microbatches) {
      EXPECT_EQ(Makespan(stages, microbatches), 3 * (microbatches + stages - 1))
          << stages << " stages, " << microbatches << " microbatches";
    }
  }
}

// Reference §6.3. Longest path 2 + 3 = 5 stages. E2 is 3 stages from the loss but 0 from a source:
// its depth is 3 by the paper's rule and 5 - 0 - 1 = 4 by that of the code.
TEST(WarmupDepths, OfTheJoinOfFigureFour) {
  const std::vector<int> stages{2, 1, 3};
  const std::vector<Edge> edges{{0, 2}, {1, 2}};
  EXPECT_EQ(WarmupDepths(stages, edges, WarmupRule::kDistanceToSink),
            (Depths{{4, 3}, {3}, {2, 1, 0}}));
  EXPECT_EQ(WarmupDepths(stages, edges, WarmupRule::kDistanceFromSource),
            (Depths{{4, 3}, {4}, {2, 1, 0}}));
}

// Chain of reference §6.8: total = max(pp_i, pp_a) + pp_llm + pp_gen = 2 + 3 + 2 = 7.
TEST(WarmupDepths, OfAChainOfFourModules) {
  const std::vector<int> stages{2, 1, 3, 2};
  const std::vector<Edge> edges{{0, 2}, {1, 2}, {2, 3}};
  EXPECT_EQ(WarmupDepths(stages, edges, WarmupRule::kDistanceToSink),
            (Depths{{6, 5}, {5}, {4, 3, 2}, {1, 0}}));
  EXPECT_EQ(WarmupDepths(stages, edges, WarmupRule::kDistanceFromSource),
            (Depths{{6, 5}, {6}, {4, 3, 2}, {1, 0}}));
}

TEST(WarmupDepths, BothRulesAgreeWhereEncodersAreEquallyDeep) {
  for (int encoder = 1; encoder <= 3; ++encoder) {
    for (int llm = 1; llm <= 4; ++llm) {
      const std::vector<int> stages{encoder, encoder, llm};
      const std::vector<Edge> edges{{0, 2}, {1, 2}};
      EXPECT_EQ(WarmupDepths(stages, edges, WarmupRule::kDistanceToSink),
                WarmupDepths(stages, edges, WarmupRule::kDistanceFromSource));
    }
  }
}

TEST(WarmupDepths, OfOneModuleIsPlainOneForwardOneBackward) {
  EXPECT_EQ(WarmupDepths({4}, {}, WarmupRule::kDistanceToSink), (Depths{{3, 2, 1, 0}}));
}

}  // namespace
}  // namespace isthmus::plan
