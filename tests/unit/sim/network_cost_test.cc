// NcclModel and WireModel on round figures: NVLink 100 GB/s, NICs 10 GB/s (cost_profiles.cc).
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/cost/nccl_model.h"
#include "sim/cost/wire_model.h"
#include "tests/unit/sim/cost_profiles.h"

namespace isthmus::sim {
namespace {

using plan::CollectiveKind;
using ::testing::HasSubstr;

constexpr base::Bytes kSize{16'000'000};

topology::GroupLocality Node(int n) { return InOneNode(n, 100e9); }
topology::GroupLocality Nodes(int nodes, int per_node) {
  return AcrossNodes(nodes, per_node, 100e9, 10e9);
}

double Us(CollectiveKind kind, base::Bytes size, const topology::GroupLocality& group) {
  return NcclModel(RoundProfile()).Time(kind, size, group).value() * 1e6;
}

topology::Route RouteOf(std::vector<std::pair<topology::LinkKind, double>> links) {
  topology::Route route;
  route.to = base::DeviceId(1);
  for (const auto& [kind, bandwidth] : links) {
    topology::Link link;
    link.kind = kind;
    link.bandwidth = base::BytesPerSecond(bandwidth);
    route.links.push_back(link);
  }
  return route;
}

std::string ErrorOf(const auto& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(NcclModel, InANodeStartRateAndRampAddUp) {
  // W = 16 MB·3/4 = 12 MB: 4 us + 12e6/50e9 (240 us) + 4·sqrt(12) us.
  EXPECT_NEAR(Us(CollectiveKind::kAllGather, kSize, Node(4)), 4 + 240 + 4 * std::sqrt(12.0), 1e-6);
  // All-reduce moves twice as much: W = 24 MB.
  EXPECT_NEAR(Us(CollectiveKind::kAllReduce, kSize, Node(4)), 4 + 480 + 4 * std::sqrt(24.0), 1e-6);
  // A broadcast carries the whole buffer: W = 16 MB, by the gather's form.
  EXPECT_NEAR(Us(CollectiveKind::kBroadcast, kSize, Node(4)), 4 + 320 + 4 * 4, 1e-6);
}

TEST(NcclModel, BetweenMeasuredSizesOfAGroupTimesAreInterpolated) {
  // n = 6, W = 16·5/6 MB: start (4 + 8)/2 us, the rest equal in both neighbours.
  const double mb = 16.0 * 5 / 6;
  EXPECT_NEAR(Us(CollectiveKind::kAllGather, kSize, Node(6)), 6 + mb * 20 + 4 * std::sqrt(mb),
              1e-6);
  // Above the largest its form holds: n = 16, W = 15 MB.
  EXPECT_NEAR(Us(CollectiveKind::kAllGather, kSize, Node(16)), 8 + 300 + 4 * std::sqrt(15.0), 1e-6);
}

TEST(NcclModel, ADegradedNvlinkStretchesTheRateOnly) {
  EXPECT_NEAR(Us(CollectiveKind::kAllGather, kSize, InOneNode(4, 50e9)),
              4 + 480 + 4 * std::sqrt(12.0), 1e-6);
}

TEST(NcclModel, MeasuredPointsReplaceTheFormBetweenThem) {
  // All-gather of 8: W = 7/8 S. Points at S = 8 MB (W 7 MB): 100 us and S = 16 MB (14 MB): 400 us.
  const profiles::Profile profile = With(RoundProfile(),
                                         {{"collective.node.all_gather.8.at.8000000", 100e-6},
                                          {"collective.node.all_gather.8.at.16000000", 400e-6}},
                                         "s");
  const NcclModel model(profile);
  const auto us = [&](double megabytes) {
    return model
               .Time(CollectiveKind::kAllGather, base::Bytes(std::llround(megabytes * 1e6)),
                     Node(8))
               .value() *
           1e6;
  };
  EXPECT_NEAR(us(8), 100, 1e-6);
  EXPECT_NEAR(us(12), 250, 1e-6);  // half way
  // Below, the form 8 + 20 W + 4 sqrt(W) holds as long as it is less than the point: W = 3.5 MB.
  EXPECT_NEAR(us(4), 8 + 70 + 4 * std::sqrt(3.5), 1e-6);
  EXPECT_NEAR(us(7.9), 100, 1e-6);  // 8 + 138 + ... is more
  // Above, the form's growth from W = 14 to 28 MB.
  EXPECT_NEAR(us(32), 400 + 280 + 4 * (std::sqrt(28.0) - std::sqrt(14.0)), 1e-6);
}

TEST(NcclModel, PointsThatFallWithTheSizeAreRefused) {
  const profiles::Profile profile = With(RoundProfile(),
                                         {{"collective.node.all_gather.8.at.8000000", 400e-6},
                                          {"collective.node.all_gather.8.at.16000000", 100e-6}},
                                         "s");
  EXPECT_THROW(NcclModel{profile}, base::Error);
}

TEST(NcclModel, WithoutReductionInTheSwitchAnAllReduceIsARingsTwoPasses) {
  const NcclModel model(With(RoundProfile(), {{"collective.nvls.enabled", 0}}));
  const auto time = [&](CollectiveKind kind, int n) { return model.Time(kind, kSize, Node(n)); };
  EXPECT_EQ(time(CollectiveKind::kAllReduce, 8),
            time(CollectiveKind::kReduceScatter, 8) + time(CollectiveKind::kAllGather, 8));
  EXPECT_EQ(time(CollectiveKind::kAllReduce, 4),
            NcclModel(RoundProfile()).Time(CollectiveKind::kAllReduce, kSize, Node(4)));
}

TEST(NcclModel, NothingToDoTakesNoTime) {
  EXPECT_EQ(Us(CollectiveKind::kAllReduce, base::Bytes(0), Node(8)), 0);
  EXPECT_EQ(Us(CollectiveKind::kAllReduce, kSize, Node(1)), 0);
}

TEST(NcclModel, AcrossNodesAllReduceUsesTheMeasuredRateOfFullNodes) {
  // 4 nodes of 8: W = 2·16·31/32 = 31 MB at 80 GB/s: 387.5 us; 10 us · 2 doublings;
  // 10·(1+2)·sqrt(31).
  EXPECT_NEAR(Us(CollectiveKind::kAllReduce, kSize, Nodes(4, 8)), 20 + 387.5 + 30 * std::sqrt(31.0),
              1e-6);
  // 2 nodes: W = 30 MB at 100 GB/s, one doubling.
  EXPECT_NEAR(Us(CollectiveKind::kAllReduce, kSize, Nodes(2, 8)), 10 + 300 + 20 * std::sqrt(30.0),
              1e-6);
}

TEST(NcclModel, AcrossNodesFewerNicsCarryLess) {
  // 4 nodes of 2 ranks: 2·10·0.9 = 18 GB/s; W = 2·16·7/8 = 28 MB.
  EXPECT_NEAR(Us(CollectiveKind::kAllReduce, kSize, Nodes(4, 2)),
              20 + 28000 / 18.0 + 30 * std::sqrt(28.0), 1e-6);
}

TEST(NcclModel, AcrossNodesGathersRunAtTheNicsRateUntilNvlinkBinds) {
  // 2 nodes of 2: W = 12 MB at 18 GB/s, 3 hops of 4 us.
  EXPECT_NEAR(Us(CollectiveKind::kAllGather, kSize, Nodes(2, 2)), 20 + 12000 / 18.0 + 12, 1e-6);
  // 8 NICs would carry 72 GB/s; NVLink carries 0.5·100. W = 15 MB, 15 hops.
  EXPECT_NEAR(Us(CollectiveKind::kReduceScatter, kSize, Nodes(2, 8)), 20 + 300 + 60, 1e-6);
}

TEST(NcclModel, AcrossNodesAllToAllPaysForWhatLeavesANode) {
  // 2 nodes of 4, each rank holds 16 MB: 4·16·(1 - 4/8) = 32 MB leave over 4 NICs: 36 GB/s.
  EXPECT_NEAR(Us(CollectiveKind::kAllToAll, kSize, Nodes(2, 4)), 25 + 32000 / 36.0, 1e-6);
}

TEST(NcclModel, RingExchangesCrossTheSlowestEdge) {
  EXPECT_NEAR(Us(CollectiveKind::kRingExchange, kSize, Node(4)), 12 + 320, 1e-6);  // 50 GB/s
  EXPECT_NEAR(Us(CollectiveKind::kRingExchange, kSize, Nodes(2, 4)), 15 + 16000 / 9.0, 1e-6);
}

TEST(NcclModel, MessagesAndCopiesFollowTheirRoute) {
  const NcclModel model(RoundProfile());
  using topology::LinkKind;
  const topology::Route nvlink = RouteOf({{LinkKind::kNvlink, 100e9}, {LinkKind::kNvlink, 100e9}});
  EXPECT_NEAR(model.P2P(kSize, nvlink).value() * 1e6, 12 + 320, 1e-6);
  const topology::Route rail = RouteOf({{LinkKind::kPcie, 50e9},
                                        {LinkKind::kPcie, 50e9},
                                        {LinkKind::kNic, 10e9},
                                        {LinkKind::kNic, 10e9},
                                        {LinkKind::kPcie, 50e9},
                                        {LinkKind::kPcie, 50e9}});
  EXPECT_NEAR(model.P2P(kSize, rail).value() * 1e6, 15 + 16000 / 9.0, 1e-6);
  EXPECT_EQ(model.P2P(kSize, topology::Route{}), base::Seconds(0));  // the same GPU

  const topology::Route host = RouteOf({{LinkKind::kPcie, 60e9}, {LinkKind::kPcie, 60e9}});
  EXPECT_NEAR(model.Copy(kSize, plan::CopyDirection::kToHost, host).value() * 1e6, 10 + 400, 1e-6);
  EXPECT_NEAR(model.Copy(kSize, plan::CopyDirection::kToDevice, host).value() * 1e6, 10 + 320,
              1e-6);
  const topology::Route slow = RouteOf({{LinkKind::kPcie, 20e9}, {LinkKind::kPcie, 60e9}});
  EXPECT_NEAR(model.Copy(kSize, plan::CopyDirection::kToDevice, slow).value() * 1e6, 10 + 800,
              1e-6);
}

TEST(NcclModel, AProfileFasterThanTheWireIsRefused) {
  // At 1 TB/s the gather of 12 MB would take 12 + 4 + 13.9 us; a 100 GB/s link needs 120 us.
  const NcclModel model(With(RoundProfile(), {{"collective.node.all_gather.4.bandwidth", 1e12}}));
  const std::string error =
      ErrorOf([&] { (void)model.Time(CollectiveKind::kAllGather, kSize, Node(4)); });
  EXPECT_THAT(error, HasSubstr("all_gather of 15.3 MiB over 4 ranks on 1 nodes"));
  EXPECT_THAT(error, HasSubstr("29.9 us, but its links need 120 us"));
}

TEST(NcclModel, ReductionInTheSwitchMayShowABusbwAboveTheLink) {
  // 8 ranks at 150 GB/s of bus bandwidth on a link of 100: W = 28 MB in 186.7 us, but the link only
  // carries 16·9/8 = 18 MB: 180 us. Four ranks, summed by the GPUs, would be refused.
  const profiles::Profile profile =
      With(RoundProfile(), {{"collective.node.all_reduce.8.bandwidth", 150e9},
                            {"collective.node.all_reduce.4.bandwidth", 150e9}});
  const NcclModel model(profile);
  EXPECT_NEAR(model.Time(CollectiveKind::kAllReduce, kSize, Node(8)).value() * 1e6,
              8 + 28000 / 150.0 + 4 * std::sqrt(28.0), 1e-6);
  EXPECT_THAT(ErrorOf([&] { (void)model.Time(CollectiveKind::kAllReduce, kSize, Node(4)); }),
              HasSubstr("links need 240 us"));
}

TEST(NcclModel, RanksThatShareAGpuAreRefused) {
  topology::GroupLocality shared = Node(4);
  shared.num_devices = 1;
  EXPECT_EQ(ErrorOf([&] { (void)Us(CollectiveKind::kAllReduce, kSize, shared); }),
            "error: a group of 4 ranks shares 1 GPUs: NCCL refuses two ranks on one GPU");
}

TEST(WireModel, BoundsFollowTheBusiestLink) {
  const WireModel model;
  const auto us = [&](CollectiveKind kind, const topology::GroupLocality& group) {
    return model.Time(kind, kSize, group).value() * 1e6;
  };
  EXPECT_NEAR(us(CollectiveKind::kAllGather, Node(4)), 120, 1e-9);      // 12 MB at 100 GB/s
  EXPECT_NEAR(us(CollectiveKind::kAllReduce, Node(8)), 180, 1e-9);      // 18 MB, in the switch
  EXPECT_NEAR(us(CollectiveKind::kAllReduce, Node(2)), 160, 1e-9);      // 16 MB either way
  EXPECT_NEAR(us(CollectiveKind::kAllReduce, Nodes(2, 8)), 200, 1e-9);  // 16 MB over 8 NICs
  EXPECT_NEAR(us(CollectiveKind::kAllGather, Nodes(4, 2)), 600, 1e-9);  // 12 MB over 2 NICs
  EXPECT_NEAR(us(CollectiveKind::kBroadcast, Nodes(4, 2)), 800, 1e-9);
  EXPECT_EQ(us(CollectiveKind::kAllReduce, Node(1)), 0);
}

}  // namespace
}  // namespace isthmus::sim
