#include "reports/forward_backward.h"

#include <vector>

#include <gtest/gtest.h>

namespace isthmus::reports {
namespace {

using traces::Category;
using traces::Event;
using traces::OpRecord;

OpRecord Op(const char* kind, const char* action, Category category, int step = 0) {
  OpRecord op;
  op.kind = kind;
  op.action = action;
  op.category = category;
  op.step = step;
  return op;
}

// One role: parameter gather, forward, backward, gradient reduction, norm, optimizer step.
traces::Header StepOfSixOps(int num_steps) {
  traces::Header header;
  header.num_steps = num_steps;
  traces::RoleRecord& role = header.roles.emplace_back();
  for (int step = 0; step < num_steps; ++step) {
    role.ops.push_back(Op("collective", "all_gather", Category::kDpComm, step));
    role.ops.push_back(Op("compute", "forward", Category::kCompute, step));
    role.ops.push_back(Op("compute", "backward", Category::kCompute, step));
    role.ops.push_back(Op("collective", "reduce_scatter", Category::kDpComm, step));
    role.ops.push_back(Op("collective", "all_reduce", Category::kScalarComm, step));
    role.ops.push_back(Op("optimizer", "step", Category::kOptimizer, step));
  }
  header.classes = {{.representative = 0, .role = 0}, {.representative = 1, .role = 0}};
  return header;
}

Event At(std::uint32_t rank_class, std::uint32_t op, std::int64_t start, std::int64_t end) {
  return {.rank_class = rank_class, .op = op, .issue_ps = start, .start_ps = start, .end_ps = end};
}

TEST(ForwardBackwardTest, GatherNormAndOptimizerAreLeftOut) {
  ForwardBackward sink;
  sink.OnHeader(StepOfSixOps(1));
  // Rank 1 starts last and ends last: from rank 0's forward at 10 to rank 1's reduction at 75.
  sink.OnEvents(std::vector<Event>{At(0, 0, 0, 10), At(0, 1, 10, 30), At(0, 2, 30, 60),
                                   At(0, 3, 60, 70), At(0, 4, 75, 80), At(0, 5, 80, 95),
                                   At(1, 0, 0, 12), At(1, 1, 12, 32), At(1, 2, 32, 62),
                                   At(1, 3, 62, 75), At(1, 4, 75, 80), At(1, 5, 80, 95)});
  EXPECT_EQ(sink.duration_ps(), 65);
}

TEST(ForwardBackwardTest, OfSeveralStepsTheLastCounts) {
  ForwardBackward sink;
  sink.OnHeader(StepOfSixOps(2));
  sink.OnEvents(std::vector<Event>{At(0, 1, 10, 30), At(0, 2, 30, 60), At(0, 3, 60, 70),
                                   At(0, 7, 110, 120), At(0, 8, 120, 140), At(0, 9, 140, 141)});
  EXPECT_EQ(sink.duration_ps(), 31);
}

TEST(ForwardBackwardTest, ARunWithoutForwardsHasNone) {
  ForwardBackward sink;
  sink.OnHeader(StepOfSixOps(1));
  sink.OnEvents(std::vector<Event>{At(0, 0, 0, 10)});
  EXPECT_FALSE(sink.duration_ps());
}

// The host issues from 10 on; what of it runs on the device starts at 18.
TEST(ForwardBackwardTest, TheHostsWaitInFrontOfTheFirstForwardCounts) {
  ForwardBackward sink;
  sink.OnHeader(StepOfSixOps(1));
  sink.OnEvents(std::vector<Event>{At(0, 0, 0, 10), At(0, 1, 18, 30), At(0, 2, 30, 60)});
  traces::Trailer trailer;
  trailer.waits = {{.rank_class = 0, .op = 0, .start_ps = 10, .end_ps = 18, .straggler = false},
                   {.rank_class = 0, .op = 1, .start_ps = 10, .end_ps = 18, .straggler = false}};
  sink.OnTrailer(trailer);
  EXPECT_EQ(sink.duration_ps(), 50);
}

// Rank 1's op starts later, at 22, but its host began first, at 5: from there to 62.
TEST(ForwardBackwardTest, TheHostThatBeginsFirstCounts) {
  ForwardBackward sink;
  sink.OnHeader(StepOfSixOps(1));
  sink.OnEvents(
      std::vector<Event>{At(0, 1, 18, 30), At(0, 2, 30, 60), At(1, 1, 22, 32), At(1, 2, 32, 62)});
  traces::Trailer trailer;
  trailer.waits = {{.rank_class = 0, .op = 1, .start_ps = 10, .end_ps = 18, .straggler = false},
                   {.rank_class = 1, .op = 1, .start_ps = 5, .end_ps = 22, .straggler = false}};
  sink.OnTrailer(trailer);
  EXPECT_EQ(sink.duration_ps(), 57);
}

}  // namespace
}  // namespace isthmus::reports
