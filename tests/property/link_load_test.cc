// Flows summed up by link: bins and losses by hand, and on random messages.

#include "sim/network/link_load.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/max_min_solver.h"
#include "topology/presets.h"

namespace isthmus::sim {
namespace {

using base::DeviceId;
using plan::Purpose;

constexpr std::int64_t kMs = 1'000'000'000;

/// Messages between the first GPUs of four nodes, each with a cause of its own unless told.
class LinkLoadTest : public ::testing::Test {
 protected:
  struct Message {
    std::int64_t at_ps = 0;
    int from = 0;  // node
    int to = 1;    // node
    double bytes = 0;
    std::uint16_t module = 0;
  };

  LinkHistory Run(const std::vector<Message>& messages, std::int64_t end_ps = 0) {
    TrafficMap map(cluster_);
    std::vector<std::uint32_t> shapes;
    for (const Message& message : messages)
      shapes.push_back(map.Message(DeviceId(message.from * 8), DeviceId(message.to * 8)));
    traffic_ = std::move(map).Settled();
    LinkLoad load(traffic_);
    FlowNetwork network(
        traffic_, [] { return std::make_unique<tests::MaxMinSolver>(); },
        [&](const FlowRecord& flow) {
          load.End(flow);
          end_ps = std::max(end_ps, flow.end_ps);
        },
        [&](const FlowRecord& flow) {
          load.Begin(flow, {.purpose = flow.purpose, .module = messages[flow.tag.a].module});
        });
    for (std::uint32_t index = 0; index < messages.size(); ++index)
      network.Start(messages[index].at_ps, 0, shapes[index], messages[index].bytes,
                    Purpose::kPipeline, {.a = index});
    while (network.NextEvent() != FlowNetwork::kNever) network.Advance(network.NextEvent());
    return std::move(load).History(end_ps);
  }

  /// The link from a node's first NIC to its leaf.
  std::size_t NicOf(int node) const {
    for (std::size_t number = 0; number < traffic_.links.size(); ++number) {
      const topology::Link& link = traffic_.links[number].link;
      if (link.kind == topology::LinkKind::kNic &&
          cluster_.DeviceAt(link.from).node == base::NodeId(node))
        return number;
    }
    return traffic_.links.size();
  }

  static std::int64_t Sum(std::span<const std::int64_t> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  }

  topology::Cluster cluster_{topology::H100Dgx(4)};
  Traffic traffic_;
};

TEST_F(LinkLoadTest, AFlowAloneFillsItsBinsEvenly) {
  // 50 MB over a NIC of 50e9 B/s: 1 ms. 32 bins of 2^24 ps are too short, of 2^25 ps long enough.
  const LinkHistory history = Run({{.bytes = 50e6, .module = 0}});
  EXPECT_EQ(history.bin_ps, 1 << 25);
  ASSERT_EQ(history.num_bins, 30U);  // 1e9 / 33,554,432 = 29.8
  const auto bins = history.bytes_of(NicOf(0));
  EXPECT_EQ(bins[0], 1'677'721);                 // 50e9 · 33.554432e-6 = 1,677,721.6
  EXPECT_EQ(bins[1], 1'677'722);                 // up to 3,355,443.2
  EXPECT_EQ(bins[29], 50'000'000 - 48'653'926);  // 29 · 1,677,721.6 = 48,653,926.4
  EXPECT_EQ(Sum(bins), 50'000'000);
  EXPECT_EQ(history.num_slow_flows, 0U);
  EXPECT_TRUE(history.losses.empty());
}

TEST_F(LinkLoadTest, TwoFlowsOnANicLoseHalfAMillisecondEach) {
  // The first has the NIC 0.5 ms to itself, 1 ms with the second, which then has it for 0.5 ms:
  // it is full for 2 ms, though each flow's mean rate is a third of it less.
  const LinkHistory history =
      Run({{.bytes = 50e6, .module = 1}, {.at_ps = kMs / 2, .to = 2, .bytes = 50e6, .module = 2}});
  const auto bins = history.bytes_of(NicOf(0));
  EXPECT_EQ(history.bin_ps, 1 << 26);
  ASSERT_EQ(history.num_bins, 30U);
  for (std::size_t bin = 0; bin < 29; ++bin)
    EXPECT_NEAR(static_cast<double>(bins[bin]), 3'355'443.2, 30) << bin;
  EXPECT_EQ(Sum(bins), 100'000'000);
  // Each was to take 1 ms and took 1.5.
  EXPECT_EQ(history.num_slow_flows, 2U);
  EXPECT_EQ(history.lost_ps, kMs);
  ASSERT_EQ(history.losses.size(), 2U);
  for (const LinkLoss& loss : history.losses) {
    EXPECT_EQ(loss.victim.module + loss.culprit.module, 3);
    EXPECT_NE(loss.victim.module, loss.culprit.module);
    EXPECT_EQ(loss.link, NicOf(0));
    EXPECT_EQ(loss.num_flows, 1U);
    EXPECT_EQ(loss.lost_ps, kMs / 2);
    EXPECT_EQ(loss.longest_ps, kMs / 2);
  }
}

TEST_F(LinkLoadTest, WhatIsLostIsDividedAsOthersAsked) {
  // A third each until the short one ends at 1.5 ms, then half each: the long ones end at 2.5 ms.
  // A long one loses 1.5 ms: to the other, which asked for 2.5 ms, and to the short one (1.5 ms)
  // as 5 : 3. The short one was to take 0.5 ms and loses 1 ms, half to each.
  const LinkHistory history = Run({{.bytes = 50e6, .module = 1},
                                   {.to = 2, .bytes = 50e6, .module = 2},
                                   {.to = 3, .bytes = 25e6, .module = 3}});
  const auto lost = [&](int victim, int culprit) {
    for (const LinkLoss& loss : history.losses)
      if (loss.victim.module == victim && loss.culprit.module == culprit) return loss.lost_ps;
    return SummedPicoseconds{0};
  };
  for (const int victim : {1, 2}) {
    EXPECT_EQ(lost(victim, 3 - victim), 937'500'000);
    EXPECT_EQ(lost(victim, 3), 562'500'000);
    EXPECT_EQ(lost(3, victim), kMs / 2);
  }
  EXPECT_EQ(history.lost_ps, 4 * kMs);
}

TEST_F(LinkLoadTest, FlowsOfOneCauseSlowEachOther) {
  const LinkHistory history = Run({{.bytes = 50e6}, {.to = 2, .bytes = 50e6}});
  ASSERT_EQ(history.losses.size(), 1U);
  EXPECT_EQ(history.losses[0].victim, history.losses[0].culprit);
  EXPECT_EQ(history.losses[0].num_flows, 2U);
  EXPECT_EQ(history.losses[0].lost_ps, 2 * kMs);
}

TEST_F(LinkLoadTest, ARunThatGoesOnHasEmptyBins) {
  const LinkHistory history = Run({{.bytes = 50e6}}, 4 * kMs);
  EXPECT_EQ(history.bin_ps, 1 << 27);
  const auto bins = history.bytes_of(NicOf(0));
  EXPECT_EQ(Sum(bins.first(8)), 50'000'000);  // 1 ms is 7.5 of them
  EXPECT_EQ(Sum(bins), 50'000'000);
}

TEST_F(LinkLoadTest, LossesOfManyFlowsMayExceedTheClock) {
  // 25 of 1e15 B on a NIC of 50e9 B/s: alone 2e4 s, together 5e5 s, 4.8e5 s lost by each. The sum,
  // 12e6 s, is more than 64 bits of picoseconds hold (9.2e6 s).
  std::vector<Message> messages(25, {.bytes = 1e15});
  for (std::uint16_t index = 0; index < 25; ++index) messages[index].module = index;
  const LinkHistory history = Run(messages);
  EXPECT_NEAR(static_cast<double>(history.lost_ps) * 1e-12, 12e6, 1);
  SummedPicoseconds lost_ps = 0;
  for (const LinkLoss& loss : history.losses) lost_ps += loss.lost_ps;
  EXPECT_TRUE(lost_ps == history.lost_ps);
  EXPECT_EQ(Sum(history.bytes_of(NicOf(0))), 25'000'000'000'000'000);
}

TEST_F(LinkLoadTest, BinsKeepEveryByteAndNoLinkCarriesMoreThanItCan) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    base::RandomStream random(seed, "messages");
    std::vector<Message> messages;
    std::vector<std::int64_t> sent(4, 0);
    for (int count = static_cast<int>(random.UniformInt(2, 30)); count > 0; --count) {
      const int from = static_cast<int>(random.UniformInt(0, 3));
      const std::int64_t bytes = random.UniformInt(1, 90'000'000);
      messages.push_back({.at_ps = random.UniformInt(0, 5 * kMs),
                          .from = from,
                          .to = (from + static_cast<int>(random.UniformInt(1, 3))) % 4,
                          .bytes = static_cast<double>(bytes),
                          .module = static_cast<std::uint16_t>(random.UniformInt(0, 2))});
      sent[static_cast<std::size_t>(from)] += bytes;
    }
    std::ranges::sort(messages, {}, &Message::at_ps);
    const LinkHistory history = Run(messages);
    for (int node = 0; node < 4; ++node) {
      if (NicOf(node) == traffic_.links.size()) continue;
      EXPECT_EQ(Sum(history.bytes_of(NicOf(node))), sent[static_cast<std::size_t>(node)]) << seed;
    }
    for (std::size_t link = 0; link < traffic_.links.size(); ++link) {
      const double room =
          traffic_.links[link].link.bandwidth.value() * static_cast<double>(history.bin_ps) / 1e12;
      // Whole bytes: one more per flow.
      for (const std::int64_t bytes : history.bytes_of(link))
        EXPECT_LE(static_cast<double>(bytes), room + 31) << seed;
    }
    SummedPicoseconds lost_ps = 0;
    for (const LinkLoss& loss : history.losses) lost_ps += loss.lost_ps;
    EXPECT_TRUE(lost_ps == history.lost_ps) << seed;
  }
}

}  // namespace
}  // namespace isthmus::sim
