#include "sim/calibrate/host_fit.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/cost/measured_kernel_model.h"
#include "tests/unit/sim/measured_rows.h"

namespace isthmus::sim {
namespace {

using traces::MeasuredRow;

constexpr double kDispatch = 4e-6;

// A machine whose products run at 20 GFLOP/s, attention at 10, memory at 4 GB/s; a collective takes
// 30 us of a core and 1 ns a byte, and waits 50 us.
std::vector<MeasuredRow> Rows(int cores) {
  std::vector<MeasuredRow> rows = {Row("dispatch", "", kDispatch), Row("op_issue", "", 10e-6),
                                   Row("copy", "", 1 / 5e9), Row("process", "", 100e6)};
  for (int busy = 1; busy <= 4; ++busy)
    rows.push_back(Row("busy", fmt::format("k{}", busy), busy < 2 ? 1e-3 : 1.25e-3));
  const auto gemm = [](int m, int n, int k) {
    return Row("gemm.fp32", fmt::format("m{}_n{}_k{}", m, n, k),
               kDispatch + 2.0 * m * n * k / 20e9);
  };
  for (const int m : {64, 512}) {
    for (const int n : {64, 512}) {
      for (const int k : {64, 512}) rows.push_back(gemm(m, n, k));
    }
  }
  rows.push_back(gemm(100, 300, 200));
  rows.back().held_out = true;
  for (const char* direction : {"forward", "backward"}) {
    const double flops = 4.0 * 4 * 128 * 128 * 32 / 2 * (direction[0] == 'f' ? 1 : 2.5);
    rows.push_back(Row(fmt::format("attention.fp32.{}.causal", direction), "s128_d32",
                       kAttentionLaunches * kDispatch + flops / 10e9));
  }
  for (const int bytes : {4'096, 1'048'576})
    rows.push_back(Row("memory.norm", fmt::format("b{}", bytes), kDispatch + bytes / 4e9));
  const auto reduce = [&](int ranks, int bytes) {
    const double core = 30e-6 + bytes * 1e-9;
    MeasuredRow row = Row(fmt::format("gloo.all_reduce.ranks_{}", ranks), fmt::format("b{}", bytes),
                          50e-6 + core * std::max(1.0, 4.0 / cores), core);
    row.busy_ranks = 4;  // the others of four are in groups of their own
    return row;
  };
  for (const int ranks : {2, 4}) {
    for (const int bytes : {1'000, 101'000}) rows.push_back(reduce(ranks, bytes));
    rows.push_back(reduce(ranks, 51'000));
    rows.back().held_out = true;
  }
  for (const int bytes : {8, 16'384, 65'536}) {
    rows.push_back(Row("gloo.p2p", fmt::format("b{}", bytes), 60e-6, 20e-6));
    rows.back().busy_ranks = 4;
  }
  return rows;
}

profiles::Profile Fit(const std::vector<MeasuredRow>& rows, int cores = 2) {
  return FitHost(rows, {.date = "2026-11-30", .cores = cores, .memory_bytes = 8'000'000'000});
}

TEST(HostFit, FindsTheMachineThatMadeTheRows) {
  const profiles::Profile profile = Fit(Rows(2));
  EXPECT_NEAR(profile.Value("cpu.gemm.fp32.m64_n512_k64", "FLOP/s"), 20e9, 1);
  EXPECT_NEAR(profile.Value("cpu.attention.fp32.backward.causal.s128_d32", "FLOP/s"), 10e9, 1);
  EXPECT_NEAR(profile.Value("cpu.memory.norm.b1048576", "B/s"), 4e9, 1);
  EXPECT_NEAR(profile.Value("device.peak_rate.fp32", "FLOP/s"), 20e9, 1);
  EXPECT_EQ(profile.Count("host.cores"), 2);
  EXPECT_EQ(profile.Get("cpu.gemm.fp32.m64_n512_k64").residual->median, 0.02);
}

TEST(HostFit, TakesCoreTimesApartThatSharedTheCores) {
  // Four ranks on two cores, in one group or two: 50 + 2 · 31 us measured; the wait is 50 on any
  // number of cores.
  for (const int cores : {1, 2, 8}) {
    const profiles::Profile profile = Fit(Rows(cores), cores);
    for (const char* group : {"gloo.all_reduce.ranks_2", "gloo.all_reduce.ranks_4"}) {
      EXPECT_NEAR(profile.Time(fmt::format("{}.wait.b1000", group)).value(), 50e-6, 1e-12);
      EXPECT_NEAR(profile.Time(fmt::format("{}.core.b1000", group)).value(), 31e-6, 1e-12);
    }
  }
}

TEST(HostFit, CutsCoreTimeToWhatTheCoresCanHaveDone) {
  std::vector<MeasuredRow> rows = Rows(2);
  // 100 us on two cores are 50 us a rank of four.
  rows.push_back(Row("gloo.broadcast.ranks_4", "b8", 100e-6, 80e-6));
  rows.back().busy_ranks = 4;
  const profiles::Profile profile = Fit(rows);
  EXPECT_NEAR(profile.Time("gloo.broadcast.ranks_4.core.b8").value(), 50e-6, 1e-12);
  EXPECT_EQ(profile.Time("gloo.broadcast.ranks_4.wait.b8").value(), 0);
}

TEST(HostFit, WantsToKnowHowManyRanksSharedTheCores) {
  std::vector<MeasuredRow> rows = Rows(2);
  for (MeasuredRow& row : rows) row.busy_ranks = 0;
  EXPECT_THROW((void)Fit(rows), base::Error);
}

TEST(HostFit, SpeedsNeverRiseWithMoreBusyRanks) {
  std::vector<MeasuredRow> rows = Rows(2);
  for (MeasuredRow& row : rows) {
    if (row.table == "busy" && row.point == "k3") row.value = 0.9e-3;
  }
  const profiles::Profile profile = Fit(rows);
  EXPECT_EQ(profile.Number("host.speed.busy_1"), 1);
  EXPECT_NEAR(profile.Number("host.speed.busy_2"), 0.8, 1e-12);
  EXPECT_NEAR(profile.Number("host.speed.busy_3"), 0.8, 1e-12);
}

TEST(HostFit, JudgesItselfByRowsItDidNotSee) {
  const profiles::Profile profile = Fit(Rows(2));
  EXPECT_NEAR(profile.Number("cpu.gemm.fp32.check"), 0, 1e-9);
  EXPECT_NEAR(profile.Number("gloo.all_reduce.ranks_4.check"), 0, 1e-9);
  std::vector<MeasuredRow> rows = Rows(2);
  for (MeasuredRow& row : rows) {
    if (row.held_out && row.table == "gemm.fp32") row.value /= 1.1;
  }
  EXPECT_NEAR(Fit(rows).Number("cpu.gemm.fp32.check"), 0.1, 1e-9);
  EXPECT_EQ(Fit(rows).Get("cpu.gemm.fp32.check").residual->num_rows, 1);
}

TEST(HostFit, NamesWhatIsMissing) {
  std::vector<MeasuredRow> rows = Rows(2);
  std::erase_if(rows, [](const MeasuredRow& row) { return row.table == "op_issue"; });
  try {
    (void)Fit(rows);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "the measurements have no op_issue ");
  }
}

}  // namespace
}  // namespace isthmus::sim
