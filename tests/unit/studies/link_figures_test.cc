#include "studies/link_figures.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/small_jobs.h"
#include "topology/presets.h"

namespace isthmus::studies {
namespace {

using plan::Purpose;

constexpr std::int64_t kMs = 1'000'000'000;

/// A run of 4 ms over links of two messages between the nodes and one within the first.
class LinkFiguresTest : public ::testing::Test {
 protected:
  LinkFiguresTest() {
    outcome_.end_ps = 4 * kMs;
    for (const auto& [from, to] : {std::pair(0, 8), std::pair(1, 9), std::pair(0, 1)}) {
      const base::DeviceId sender(from);
      const base::DeviceId receiver(to);
      for (const topology::Link& link : cluster_.RouteBetween(sender, receiver).links)
        outcome_.links.push_back({.link = link, .account = {}});
    }
    // Bins of 2.5 ms: the second is cut short to 1.5 ms.
    outcome_.link_history = sim::LinkHistory{.bin_ps = kMs * 5 / 2, .num_bins = 2};
    outcome_.link_history->bytes.resize(2 * outcome_.links.size());
  }

  /// The `index`-th link of a kind, in the order of the routes.
  std::uint32_t Link(topology::LinkKind kind, int index) const {
    std::uint32_t number = 0;
    while (outcome_.links[number].link.kind != kind || index-- > 0) ++number;
    return number;
  }

  void Carry(std::uint32_t link, Purpose purpose, std::int64_t first, std::int64_t second) {
    outcome_.links[link].account.bytes[static_cast<std::size_t>(purpose)] +=
        static_cast<double>(first + second);
    outcome_.link_history->bytes[2 * link] += first;
    outcome_.link_history->bytes[2 * link + 1] += second;
  }

  reports::LinkFigures Describe(std::size_t num_hottest = 10) const {
    return DescribeLinks(outcome_, scenarios::Scenario{}, program_, cluster_, num_hottest);
  }

  topology::Cluster cluster_{topology::H100Dgx(2)};
  plan::Program program_ =
      plan::Build(tests::SmallJob("job", plan::Placement::kColocated,
                                  {tests::SmallEncoder("vision", {.tp = 2, .dp = 8}),
                                   tests::SmallLlm({.tp = 4, .pp = 2, .dp = 2})}));
  sim::Outcome outcome_;
};

TEST_F(LinkFiguresTest, KindsSumUpWhatTheirLinksCarried) {
  // NICs carry 50e9 B/s: 200 MB in the run, 125 MB in the first bin, 75 MB in the second.
  Carry(Link(topology::LinkKind::kNic, 0), Purpose::kPipeline, 50'000'000, 0);
  Carry(Link(topology::LinkKind::kNic, 0), Purpose::kGradientSync, 0, 75'000'000);
  Carry(Link(topology::LinkKind::kNic, 2), Purpose::kPipeline, 0, 15'000'000);
  Carry(Link(topology::LinkKind::kNvlink, 0), Purpose::kOffload, 1, 0);
  const reports::LinkFigures figures = Describe();
  EXPECT_DOUBLE_EQ(figures.end_s, 4e-3);
  EXPECT_DOUBLE_EQ(figures.bin_s, 2.5e-3);
  ASSERT_EQ(figures.kinds.size(), 2U);  // nothing crossed PCIe
  EXPECT_EQ(figures.kinds[0].kind, "nvlink");
  const reports::LinkKindUse& nics = figures.kinds[1];
  EXPECT_EQ(nics.kind, "nic");
  EXPECT_EQ(nics.num_links, 2);
  EXPECT_EQ(nics.bytes, 140'000'000);
  EXPECT_EQ(nics.traffic,
            (reports::Traffic{{"pipeline", 65'000'000}, {"gradient_sync", 75'000'000}}));
  EXPECT_DOUBLE_EQ(nics.utilisation, 0.35);           // (125 + 15) / (2 · 200)
  EXPECT_DOUBLE_EQ(nics.highest_utilisation, 0.625);  // 125 / 200
  ASSERT_EQ(nics.over_time.size(), 2U);
  EXPECT_DOUBLE_EQ(nics.over_time[0], 0.2);  // (50 / 125 + 0) / 2
  EXPECT_DOUBLE_EQ(nics.over_time[1], 0.6);  // (75 / 75 + 15 / 75) / 2
}

TEST_F(LinkFiguresTest, TheHottestComeFirstAndEqualOnesByTheirPlace) {
  const std::uint32_t first = Link(topology::LinkKind::kNic, 0);
  const std::uint32_t second = Link(topology::LinkKind::kNic, 1);
  const std::uint32_t third = Link(topology::LinkKind::kNic, 2);
  Carry(first, Purpose::kPipeline, 10'000'000, 0);
  Carry(second, Purpose::kPipeline, 20'000'000, 0);
  Carry(third, Purpose::kPipeline, 10'000'000, 0);
  outcome_.links[second].account.busy_ps = kMs / 2;
  reports::LinkFigures figures = Describe(2);
  ASSERT_EQ(figures.hottest.size(), 2U);
  EXPECT_EQ(figures.hottest[0].from, "leaf 0.0");
  EXPECT_EQ(figures.hottest[0].to, "nic 1.0");
  EXPECT_DOUBLE_EQ(figures.hottest[0].utilisation, 0.1);
  EXPECT_DOUBLE_EQ(figures.hottest[0].busy_s, 5e-4);
  EXPECT_EQ(figures.hottest[0].bytes, 20'000'000);
  EXPECT_EQ(figures.hottest[1].from, "nic 0.0");
  figures = Describe();
  ASSERT_EQ(figures.hottest.size(), 3U);
  EXPECT_EQ(figures.hottest[2].from, "nic 0.1");
  EXPECT_TRUE(Describe(0).hottest.empty());
}

TEST_F(LinkFiguresTest, LossesAreSummedByCausesAndKindOfLink) {
  const sim::LinkCause sync{.purpose = Purpose::kGradientSync,
                            .module = 1,
                            .kind = plan::OpKind::kCollective,
                            .detail = static_cast<std::uint8_t>(plan::CollectiveKind::kAllGather)};
  const sim::LinkCause boundary{.purpose = Purpose::kBoundary};
  const std::uint32_t one = Link(topology::LinkKind::kNic, 0);
  const std::uint32_t other = Link(topology::LinkKind::kNic, 2);
  const std::uint32_t near = Link(topology::LinkKind::kNvlink, 0);
  outcome_.link_history->num_slow_flows = 9;
  outcome_.link_history->lost_ps = 10 * kMs;
  outcome_.link_history->losses = {{boundary, sync, one, 2, kMs, kMs / 2},
                                   {boundary, sync, other, 3, 2 * kMs, kMs},
                                   {boundary, sync, near, 1, kMs / 2, kMs / 2},
                                   {sync, boundary, one, 3, 13 * kMs / 2, 4 * kMs}};
  const reports::LinkFigures figures = Describe();
  EXPECT_EQ(figures.num_slow_flows, 9);
  EXPECT_DOUBLE_EQ(figures.lost_s, 10e-3);
  ASSERT_EQ(figures.losses.size(), 3U);  // by what was lost
  EXPECT_EQ(figures.losses[0].victim.module, "llm");
  EXPECT_EQ(figures.losses[0].victim.purpose, "gradient_sync");
  EXPECT_EQ(figures.losses[0].victim.action, "all_gather");
  EXPECT_DOUBLE_EQ(figures.losses[0].lost_s, 6.5e-3);
  const reports::LinkLossFigure& nics = figures.losses[1];
  EXPECT_EQ(nics.victim.module, "vision");
  EXPECT_EQ(nics.victim.action, "exchange");
  EXPECT_EQ(nics.culprit.module, "llm");
  EXPECT_EQ(nics.kind, "nic");
  EXPECT_EQ(nics.num_links, 2);
  EXPECT_EQ(nics.num_flows, 5);
  EXPECT_DOUBLE_EQ(nics.lost_s, 3e-3);
  EXPECT_DOUBLE_EQ(nics.longest_s, 1e-3);
  EXPECT_EQ(nics.worst_from, "nic 0.1");
  EXPECT_DOUBLE_EQ(nics.worst_lost_s, 2e-3);
  EXPECT_EQ(figures.losses[2].kind, "nvlink");
}

}  // namespace
}  // namespace isthmus::studies
