#include "sim/calibrate/gpu_fit.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "profiles/kernel_tables.h"
#include "sim/cost/gloo_model.h"
#include "sim/cost/machine_models.h"
#include "sim/cost/measured_kernel_model.h"
#include "tests/unit/sim/measured_rows.h"

namespace isthmus::sim {
namespace {

using traces::MeasuredRow;

constexpr double kDispatch = 6e-6;

// A GPU whose products run at 400 TFLOP/s where they are large and 40 where they are small, memory
// at 2 TB/s; its clock falls by a fifth within a minute, and copies go at 50 and 40 GB/s.
std::vector<MeasuredRow> Rows() {
  std::vector<MeasuredRow> rows = {
      Row("dispatch", "", kDispatch),      Row("op_issue", "", 20e-6),
      Row("clock.bf16", "burst", 2.0e-3),  Row("clock.bf16", "sustained", 2.5e-3),
      Row("copy.latency", "", 10e-6),      Row("copy.to_host", "", 1 / 50e9),
      Row("copy.to_device", "", 1 / 40e9), Row("device.memory", "", 80e9),
      Row("device.workspace", "", 100e6)};
  for (const int size : {512, 4096}) {
    const double rate = size == 512 ? 40e12 : 400e12;
    rows.push_back(Row("gemm.bf16", fmt::format("m{0}_n{0}_k{0}", size),
                       kDispatch + 2.0 * size * size * size / rate));
  }
  for (const int m : {512, 4096}) {
    for (const int n : {512, 4096}) {
      for (const int k : {512, 4096}) {
        if (m == n && n == k) continue;
        rows.push_back(Row("gemm.bf16", fmt::format("m{}_n{}_k{}", m, n, k),
                           kDispatch + 2.0 * m * n * k / 40e12));
      }
    }
  }
  for (const int bytes : {65'536, 67'108'864})
    rows.push_back(Row("memory.norm", fmt::format("b{}", bytes), kDispatch + bytes / 2e12));
  for (const int ranks : {2, 4}) {
    for (const int bytes : {1'000, 1'001'000}) {
      rows.push_back(Row(fmt::format("gloo.all_reduce.ranks_{}", ranks), fmt::format("b{}", bytes),
                         100e-6 + bytes * 1e-9, 20e-6));
    }
  }
  for (const int bytes : {8, 16'384})
    rows.push_back(Row("gloo.p2p", fmt::format("b{}", bytes), 50e-6));
  // 100 + 1 us over Gloo, two copies of 10 us, 1000 B at 50 and at 40 GB/s.
  rows.push_back(Row("staged.all_reduce.ranks_2", "b1000", 101e-6 + 20e-6 + 0.045e-6));
  rows.back().held_out = true;
  for (MeasuredRow& row : rows) {
    const bool communicates = row.table.starts_with("gloo.") || row.table.starts_with("staged.");
    if (communicates) row.busy_ranks = 4;
  }
  return rows;
}

profiles::Profile Fit(const std::vector<MeasuredRow>& rows) {
  return FitGpu(rows, {.name = "h", .date = "2026-11-30", .cores = 16});
}

TEST(GpuFit, FindsTheMachineThatMadeTheRows) {
  const profiles::Profile profile = Fit(Rows());
  EXPECT_EQ(profiles::KernelTables(profile), "gpu");
  EXPECT_FALSE(IsOfHost(profile));
  EXPECT_NEAR(profile.Value("gpu.gemm.bf16.m4096_n4096_k4096", "FLOP/s"), 400e12, 1e3);
  EXPECT_NEAR(profile.Value("device.peak_rate.bf16", "FLOP/s"), 400e12, 1e3);
  EXPECT_NEAR(profile.Number("clock.bf16.ratio"), 0.8, 1e-12);
  EXPECT_NEAR(profile.Value("copy.to_host.bandwidth", "B/s"), 50e9, 1);
  EXPECT_NEAR(profile.Value("copy.to_device.bandwidth", "B/s"), 40e9, 1);
  EXPECT_EQ(profile.Size("device.usable_memory").value(), 80'000'000'000);
  EXPECT_EQ(profile.Size("ledger.workspace").value(), 100'000'000);
  EXPECT_NEAR(profile.Number("staged.all_reduce.ranks_2.check"), 0, 1e-6);
}

// No product beats the clock that a minute leaves; what never came near it is as it was measured.
TEST(GpuFit, ProductsRunAtTheSustainedClock) {
  const MeasuredKernelModel model(Fit(Rows()));
  const auto time = [&](std::int64_t size) {
    return model.Time(plan::Gemm{.m = size, .n = size, .k = size, .dtype = plan::DType::kBf16})
        .value();
  };
  EXPECT_NEAR(time(4096), 2.0 * 4096 * 4096 * 4096 / 320e12, 1e-12);
  EXPECT_NEAR(time(512), 2.0 * 512 * 512 * 512 / 40e12, 1e-12);
}

TEST(GpuFit, AClockThatRoseIsNoGain) {
  std::vector<MeasuredRow> rows = Rows();
  for (MeasuredRow& row : rows) {
    if (row.point == "sustained") row.value = 1.9e-3;
  }
  EXPECT_EQ(Fit(rows).Number("clock.bf16.ratio"), 1);
}

TEST(GpuFit, SimulationHasAllItNeedsForRanksThatShareTheGpu) {
  topology::ClusterSpec cluster;
  cluster.ranks_share = topology::RanksShare::kGpu;
  const MachineModels models = MakeModels(cluster, Fit(Rows()));
  EXPECT_TRUE(models.shares_device);
  EXPECT_NEAR(models.op_issue.value(), 20e-6, 1e-15);
}

TEST(GpuFit, NamesWhatIsMissing) {
  std::vector<MeasuredRow> rows = Rows();
  std::erase_if(rows, [](const MeasuredRow& row) { return row.table == "clock.bf16"; });
  try {
    Fit(rows);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "the measurements have no clock.bf16 burst");
  }
}

}  // namespace
}  // namespace isthmus::sim
