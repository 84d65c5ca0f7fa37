#include "sim/engine/op_graph.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/tiny_program.h"

namespace isthmus::sim {
namespace {

using Ops = std::vector<std::uint32_t>;

Ops ListOf(std::span<const std::uint32_t> ops) { return {ops.begin(), ops.end()}; }

class OpGraphTest : public ::testing::Test {
 protected:
  OpGraph Graph() {
    sketch_.Give({0});
    return OpGraph(program_.roles.front());
  }
  int Waits(const OpGraph& graph, std::uint32_t op) { return graph.num_prerequisites()[op]; }

  plan::Program program_ = EmptyProgram({.tp = 2, .pp = 2});
  RoleSketch sketch_{program_};
};

TEST_F(OpGraphTest, OrdersOpsOfOneLaneAndNoOthers) {
  const auto first = sketch_.Compute(1);
  const auto beside = sketch_.AllReduce(1, plan::kTp);
  const auto second = sketch_.Compute(1);
  const OpGraph graph = Graph();
  EXPECT_EQ(Waits(graph, first), 0);
  EXPECT_EQ(Waits(graph, beside), 0);
  EXPECT_EQ(Waits(graph, second), 1);
  EXPECT_EQ(ListOf(graph.AfterOp(first)), Ops{second});
  EXPECT_TRUE(graph.AfterOp(beside).empty());
}

TEST_F(OpGraphTest, OrdersAcrossLanesByValues) {
  const auto value = sketch_.NewValue();
  const auto compute = sketch_.Compute(1, {.produces = {value}});
  const auto collective = sketch_.AllReduce(1, plan::kTp, {.consumes = {value}});
  const OpGraph graph = Graph();
  EXPECT_EQ(Waits(graph, collective), 1);
  EXPECT_EQ(ListOf(graph.AfterOp(compute)), Ops{collective});
}

TEST_F(OpGraphTest, ABlockingHostComesToAnOpWhenItHasDoneAndWaitedForAllBefore) {
  const auto value = sketch_.NewValue();
  const auto sum = sketch_.NewValue();
  const auto first = sketch_.Compute(1, {.produces = {value}});
  const auto reduce = sketch_.AllReduce(1, plan::kTp, {.consumes = {value}, .produces = {sum}});
  const auto beside = sketch_.Compute(1);
  const auto send = sketch_.Exchange({{.value = sum, .bytes = 8}}, {.consumes = {sum}});
  const auto other = sketch_.AllReduce(1, plan::kCp);
  sketch_.Give({0});
  const OpGraph graph(program_.roles.front(), HostOrder::kBlocking);
  EXPECT_EQ(Waits(graph, reduce), 1);
  // Posted, the all-reduce goes on beside the next op, which only its own lane holds up.
  EXPECT_EQ(Waits(graph, beside), 1);
  EXPECT_EQ(ListOf(graph.AfterOp(first)), (Ops{reduce, beside}));
  // The send needs the sum; the last op needs neither, but the host waits for the sum before it
  // posts the send.
  EXPECT_EQ(ListOf(graph.AfterOp(reduce)), (Ops{send, other}));
  EXPECT_EQ(ListOf(graph.AfterOp(beside)), (Ops{send, other}));
  EXPECT_EQ(Waits(graph, other), 2);
}

TEST_F(OpGraphTest, CountsAProducerOnce) {
  const auto a = sketch_.NewValue();
  const auto b = sketch_.NewValue();
  sketch_.Compute(1, {.produces = {a, b}});
  // Two values of the op before it on the same lane: one thing to wait for.
  const auto next = sketch_.Compute(1, {.consumes = {a, b}});
  const OpGraph graph = Graph();
  EXPECT_EQ(Waits(graph, next), 1);
  EXPECT_EQ(ListOf(graph.AfterOp(0)), Ops{next});
}

TEST_F(OpGraphTest, WaitsForNothingThatIsThereFromTheStart) {
  const auto parameter = sketch_.NewValue({.persistent = true});
  const auto op = sketch_.Compute(1, {.consumes = {parameter}});
  const OpGraph graph = Graph();
  EXPECT_EQ(Waits(graph, op), 0);
}

TEST_F(OpGraphTest, FreesTheP2PLaneWhenPosted) {
  const auto sent = sketch_.NewValue();
  const auto got = sketch_.NewValue();
  const auto first = sketch_.Exchange({{.sends = true, .value = sent, .bytes = 8}});
  const auto second =
      sketch_.Exchange({{.sends = false, .value = got, .bytes = 8}}, {.produces = {got}});
  const OpGraph graph = Graph();
  EXPECT_EQ(Waits(graph, second), 1);
  EXPECT_EQ(graph.AfterPost(first), second);
  EXPECT_EQ(graph.AfterPost(second), plan::kNone32);
  EXPECT_TRUE(graph.AfterOp(first).empty());  // nobody waits for the message itself
}

TEST_F(OpGraphTest, MakesAReceivedValueReadyWithItsOwnTransfer) {
  const auto left = sketch_.NewValue();
  const auto right = sketch_.NewValue();
  const auto exchange = sketch_.Exchange({{.sends = false, .delta = -1, .value = left, .bytes = 8},
                                          {.sends = false, .delta = 1, .value = right, .bytes = 8}},
                                         {.produces = {left, right}});
  const auto needs_right = sketch_.Compute(1, {.consumes = {right}});
  const auto needs_both = sketch_.AllReduce(1, plan::kTp, {.consumes = {left, right}});
  const OpGraph graph = Graph();
  EXPECT_EQ(ListOf(graph.AfterTransfer(0)), Ops{needs_both});
  EXPECT_EQ(ListOf(graph.AfterTransfer(1)), (Ops{needs_right, needs_both}));
  EXPECT_EQ(Waits(graph, needs_right), 1);
  EXPECT_EQ(Waits(graph, needs_both), 2);
  EXPECT_EQ(graph.OpOfTransfer(0), exchange);
  EXPECT_EQ(graph.OpOfTransfer(1), exchange);
}

TEST_F(OpGraphTest, HoldsEverythingBehindABlockingOp) {
  const auto before = sketch_.Compute(1);
  const auto blocking = sketch_.AllReduce(1, plan::kTp, {.flags = plan::kBlocksHost});
  const auto compute = sketch_.Compute(1);
  const auto copy = sketch_.Copy(1, plan::CopyDirection::kToHost);
  const OpGraph graph = Graph();
  EXPECT_EQ(Waits(graph, blocking), 0);
  EXPECT_EQ(Waits(graph, compute), 2);  // its lane and the host
  EXPECT_EQ(Waits(graph, copy), 1);
  EXPECT_EQ(ListOf(graph.AfterOp(blocking)), (Ops{compute, copy}));
  EXPECT_EQ(ListOf(graph.AfterOp(before)), Ops{compute});
}

TEST_F(OpGraphTest, CountsABlockingExchangeForTheLaneAndForTheHost) {
  const auto value = sketch_.NewValue();
  const auto first =
      sketch_.Exchange({{.sends = true, .value = value, .bytes = 8}}, {.flags = plan::kBlocksHost});
  const auto second = sketch_.Exchange({{.sends = true, .value = value, .bytes = 8}});
  const OpGraph graph = Graph();
  EXPECT_EQ(Waits(graph, second), 2);
  EXPECT_EQ(graph.AfterPost(first), second);
  EXPECT_EQ(ListOf(graph.AfterOp(first)), Ops{second});
}

}  // namespace
}  // namespace isthmus::sim
