#include "traces/internal/message_flows.h"

#include <gtest/gtest.h>

namespace isthmus::traces::internal {
namespace {

using Flows = std::vector<std::uint64_t>;

// A role whose op `index` has transfer `transfers[index]`, and no more.
RoleRecord Role(const std::vector<TransferRecord>& transfers) {
  RoleRecord role;
  for (const TransferRecord& transfer : transfers) {
    role.ops.emplace_back().transfers = {transfer};
  }
  return role;
}

RankClass Class(std::uint32_t role, std::vector<std::uint32_t> peers) {
  RankClass rank_class;
  rank_class.role = role;
  rank_class.peers = std::move(peers);
  return rank_class;
}

Event Transfer(std::uint32_t rank_class, std::uint32_t op) {
  return {.rank_class = rank_class, .op = op, .inner = 1};
}

std::uint64_t Arriving(const MessageFlows& flows, std::uint32_t rank_class, std::uint32_t op) {
  const auto arrival = flows.ArrivalOf(Transfer(rank_class, op));
  return arrival ? arrival->flow : 0;
}

TEST(MessageFlowsTest, TheNthSendMeetsTheNthReceiveOfThePair) {
  // Class 0 sends to 1, to 2, to 1; classes 1 and 2 receive from 0.
  Header header;
  header.roles = {Role({{true, 0, 1}, {true, 1, 1}, {true, 0, 1}}),
                  Role({{false, 0, 1}, {false, 0, 1}}), Role({{false, 0, 1}})};
  header.classes = {Class(0, {1, 2}), Class(1, {0}), Class(2, {0})};
  const MessageFlows flows(
      header,
      {{2, 0, 0, 25}, {0, 0, 0, 10}, {0, 1, 0, 20}, {0, 2, 0, 30}, {1, 0, 0, 12}, {1, 1, 0, 33}});
  // Flows are numbered by receives in order of class and op, after the three sends: 4, 5, 6.
  EXPECT_EQ(flows.DeparturesOf(Transfer(0, 0)), Flows{4});
  EXPECT_EQ(flows.DeparturesOf(Transfer(0, 1)), Flows{6});
  EXPECT_EQ(flows.DeparturesOf(Transfer(0, 2)), Flows{5});
  EXPECT_EQ(Arriving(flows, 1, 0), 4U);
  EXPECT_EQ(Arriving(flows, 1, 1), 5U);
  EXPECT_EQ(flows.ArrivalOf(Transfer(1, 1))->sent_ps, 30);
  EXPECT_EQ(Arriving(flows, 2, 0), 6U);
  EXPECT_TRUE(flows.DeparturesOf(Transfer(1, 0)).empty());
}

TEST(MessageFlowsTest, AlikePeersAreServedInTurn) {
  // A leader (class 0) sends to three ranks of class 1: peers 0, 1, 2 are all of class 1, which
  // hears of one message. Class 1 answers with one; the leader hears of three.
  Header header;
  header.roles = {
      Role({{true, 0, 1}, {true, 1, 1}, {true, 2, 1}, {false, 0, 1}, {false, 1, 1}, {false, 2, 1}}),
      Role({{false, 0, 1}, {true, 0, 1}})};
  header.classes = {Class(0, {1, 1, 1}), Class(1, {0})};
  std::vector<TransferEvent> transfers;
  for (std::uint32_t op = 0; op < 6; ++op) transfers.push_back({0, op, 0, 0});
  for (std::uint32_t op = 0; op < 2; ++op) transfers.push_back({1, op, 0, 0});
  const MessageFlows flows(header, transfers);
  // Class 1's receive is transfer 6, so flow 7; it meets the first of the three alike sends.
  EXPECT_EQ(Arriving(flows, 1, 0), 7U);
  EXPECT_EQ(flows.DeparturesOf(Transfer(0, 0)), Flows{7});
  EXPECT_TRUE(flows.DeparturesOf(Transfer(0, 1)).empty());
  // The one answer goes to all three receives of the leader (transfers 3, 4, 5).
  EXPECT_EQ(flows.DeparturesOf(Transfer(1, 1)), (Flows{4, 5, 6}));
  EXPECT_EQ(Arriving(flows, 0, 5), 6U);
}

TEST(MessageFlowsTest, ALoneReceiveHasNoFlow) {
  Header header;
  header.roles = {Role({{true, 0, 1}}), Role({{false, 0, 1}, {false, 0, 1}})};
  header.classes = {Class(0, {1}), Class(1, {0})};
  const MessageFlows flows(header, {{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}});
  EXPECT_EQ(Arriving(flows, 1, 0), 2U);
  EXPECT_EQ(Arriving(flows, 1, 1), 0U);
  // A transfer that never took place.
  EXPECT_EQ(Arriving(flows, 1, 7), 0U);
}

}  // namespace
}  // namespace isthmus::traces::internal
