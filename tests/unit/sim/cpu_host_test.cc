#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/cost/gloo_model.h"
#include "sim/cost/log_table.h"
#include "sim/cost/machine_models.h"
#include "sim/cost/measured_kernel_model.h"
#include "tests/unit/sim/host_profile.h"
#include "topology/presets.h"

namespace isthmus::sim {
namespace {

using plan::CollectiveKind;

profiles::Profile With(std::initializer_list<std::tuple<std::string, double, std::string>> rows) {
  profiles::ProfileBuilder builder("test");
  for (const auto& [key, value, unit] : rows)
    builder.Set(key, {.value = value, .unit = unit, .source = "test"});
  return std::move(builder).Build();
}

topology::GroupLocality Group(int num_ranks) {
  topology::GroupLocality group;
  group.num_ranks = num_ranks;
  group.num_devices = 1;
  group.num_nodes = 1;
  return group;
}

TEST(LogTable, MeetsAPowerLawBetweenItsPointsAndHoldsItsEnds) {
  // v = x²: 1 at 1, 10,000 at 100.
  const LogTable table(With({{"t.b1", 1, "1"}, {"t.b100", 10'000, "1"}}), "t", {"b"}, "1");
  EXPECT_NEAR(table.At({1}), 1, 1e-12);
  EXPECT_NEAR(table.At({10}), 100, 1e-9);
  EXPECT_NEAR(table.At({100}), 10'000, 1e-7);
  EXPECT_NEAR(table.At({0.5}), 1, 1e-12);
  EXPECT_NEAR(table.At({1e6}), 10'000, 1e-7);
}

TEST(LogTable, WeighsAllCornersOfACell) {
  // log2 of the values: 0 2 4 6; in the middle of the cell their mean, 3.
  const LogTable table(
      With({{"t.m1_n1", 1, "1"}, {"t.m1_n4", 4, "1"}, {"t.m4_n1", 16, "1"}, {"t.m4_n4", 64, "1"}}),
      "t", {"m", "n"}, "1");
  EXPECT_NEAR(table.At({2, 2}), 8, 1e-9);
  EXPECT_NEAR(table.At({1, 4}), 4, 1e-9);
  EXPECT_NEAR(table.At({4, 1}), 16, 1e-9);
}

TEST(LogTable, RefusesAGridWithAGap) {
  const auto profile =
      With({{"t.m1_n1", 1, "1"}, {"t.m1_n4", 4, "1"}, {"t.m4_n1", 16, "1"}, {"t.check", 0, "1"}});
  EXPECT_THROW(LogTable(profile, "t", {"m", "n"}, "1"), base::Error);
  EXPECT_THROW(LogTable(profile, "u", {"m", "n"}, "1"), base::Error);
}

TEST(LineTable, IsConstantBelowItsPointsAndGoesOnBeyondThem) {
  const LineTable table(With({{"t.b10", 1, "s"}, {"t.b30", 3, "s"}, {"t.b40", 8, "s"}}), "t", "b",
                        "s");
  EXPECT_DOUBLE_EQ(table.At(1), 1);
  EXPECT_DOUBLE_EQ(table.At(20), 2);
  EXPECT_DOUBLE_EQ(table.At(35), 5.5);
  EXPECT_DOUBLE_EQ(table.At(80), 28);  // 8, and 40 at half a second each
  const LineTable point(With({{"t.b10", 1, "s"}}), "t", "b", "s");
  EXPECT_DOUBLE_EQ(point.At(5), 1);
  EXPECT_DOUBLE_EQ(point.At(80), 8);
}

TEST(MeasuredKernelModel, PricesKernelsByTheirTables) {
  const MeasuredKernelModel model(HostProfile());
  // 2·100³ FLOP at 50 GFLOP/s.
  const plan::Gemm gemm{.m = 100, .n = 100, .k = 100, .dtype = plan::DType::kFp32};
  EXPECT_NEAR(model.Time(gemm).value(), 40e-6, 1e-12);
  EXPECT_NEAR(model.LaunchGap(gemm).value(), 5e-6, 1e-15);
  // 4·2·64·64·32 FLOP at 20 GFLOP/s, half of it causal.
  const plan::Attention attention{.num_sequences = 1,
                                  .query_len = 64,
                                  .kv_len = 64,
                                  .heads = 2,
                                  .kv_heads = 2,
                                  .head_dim = 32,
                                  .dtype = plan::DType::kFp32};
  EXPECT_NEAR(model.Time(attention).value(), 26.2144e-6, 1e-12);
  EXPECT_NEAR(model.LaunchGap(attention).value(), 100e-6, 1e-12);
  const plan::MemoryBound moved{.bytes = base::Bytes(10'000), .launches = 2};
  EXPECT_NEAR(model.Time(moved).value(), 2e-6, 1e-12);
  EXPECT_NEAR(model.LaunchGap(moved).value(), 10e-6, 1e-15);
}

TEST(MeasuredKernelModel, SaysWhichTableIsMissing) {
  const MeasuredKernelModel model(HostProfile());
  try {
    (void)model.Time(plan::Gemm{.m = 1, .n = 1, .k = 1, .dtype = plan::DType::kFp8});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("has no kernels cpu.gemm.fp8"), std::string::npos)
        << error.what();
  }
}

TEST(GlooModel, AddsWaitAndCoreTimeBetweenMeasuredSizesAndRanks) {
  const GlooModel model(HostProfile(), GlooModel::Staging::kNone);
  // Two ranks: wait 100 us, core 50 us at 1,000 B; 300 and 250 at 5,000 B. Four ranks: twice that.
  const auto us = [&](std::int64_t size, int ranks) {
    return model.Time(CollectiveKind::kAllReduce, base::Bytes(size), Group(ranks)).value() * 1e6;
  };
  EXPECT_NEAR(us(1'000, 2), 150, 1e-6);
  EXPECT_NEAR(us(3'000, 2), 350, 1e-6);
  EXPECT_NEAR(us(1'000, 4), 300, 1e-6);
  EXPECT_NEAR(us(1'000, 3), 225, 1e-6);
  EXPECT_NEAR(us(1'000, 7), 600, 1e-6);  // 6 steps for 3
  EXPECT_EQ(us(0, 4), 0);
  EXPECT_EQ(us(1'000, 1), 0);
  EXPECT_NEAR(
      model.CoreTime(CollectiveKind::kAllReduce, base::Bytes(5'000), Group(2)).value() * 1e6, 250,
      1e-6);
}

TEST(GlooModel, StagesThroughTheHostOfAGpuWithoutItsCores) {
  const GlooModel model(HostProfile(), GlooModel::Staging::kThroughHost);
  // Two copies of 1 us and 1,000 B at 5 GB/s each more.
  EXPECT_NEAR(model.Time(CollectiveKind::kAllReduce, base::Bytes(1'000), Group(2)).value() * 1e6,
              152.4, 1e-6);
  EXPECT_EQ(model.CoreTime(CollectiveKind::kAllReduce, base::Bytes(1'000), Group(2)).value(), 0);
}

TEST(MachineModels, RefusesAHostsProfileForGpusAndTheOtherWayRound) {
  topology::ClusterSpec host;
  host.name = "cpu-host";
  host.ranks_share = topology::RanksShare::kCores;
  EXPECT_EQ(MakeModels(host, HostProfile()).cores, 2);
  host.cores = 8;
  EXPECT_EQ(MakeModels(host, HostProfile()).cores, 8);
  EXPECT_EQ(MakeModels(host, HostProfile()).speeds, (std::vector<double>{1, 0.5}));
  EXPECT_THROW((void)MakeModels(topology::H100Dgx(1), HostProfile()), base::Error);
}

}  // namespace
}  // namespace isthmus::sim
