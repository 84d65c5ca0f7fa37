// Measuring a device by its own clock, on a fake whose marks are a tick apart.

#include "backend/torch/measure/device_cases.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/backend_torch/fake_device.h"

namespace isthmus::backend {
namespace {

using traces::MeasuredRow;

constexpr double kTick = 4e-3;  // s; longer than a sample has to be, so one call a sample

DevicePlan SmallPlan() {
  return {.grid = {.sides = {8, 16},
                   .held_out_products = {{8, 16, 8}},
                   .spans = {8},
                   .widths = {8},
                   .held_out_attentions = {},
                   .bytes = {98'304},
                   .held_out_bytes = {}},
          .budget_s = 2 * kTick,
          .clock_s = 0,
          .clock_side = 8,
          .copied_bytes = 1'000};
}

tests::FakeDevice TickingDevice() {
  tests::FakeDevice device;
  device.tick_ps = static_cast<std::int64_t>(kTick * 1e12);
  device.counted = {.allocated_bytes = 11, .capacity_bytes = 22};
  return device;
}

TEST(DeviceCasesTest, ASampleIsTimeByCalls) {
  tests::FakeDevice device = TickingDevice();
  int calls = 0;
  const Samples samples = TimeOnDevice(
      device, [&] { ++calls; }, 4 * kTick);
  // Two to warm up, one to see how long it takes; then samples of one call until 4 ticks are used.
  EXPECT_EQ(calls, 3 + 4);
  ASSERT_EQ(samples.values.size(), 4U);
  EXPECT_DOUBLE_EQ(samples.values.front(), kTick);
}

// At 3 us a call, 667 of them make the two milliseconds of a sample.
TEST(DeviceCasesTest, ShortCallsAreTimedManyAtOnce) {
  tests::FakeDevice device;
  device.tick_ps = 3'000'000;
  int calls = 0;
  TimeOnDevice(
      device, [&] { ++calls; }, 0);
  EXPECT_EQ(calls, 3 + 3 * 667);
}

TEST(DeviceCasesTest, HasEveryTableThatAFitNeeds) {
  tests::FakeDevice device = TickingDevice();
  std::map<std::string, double> values;
  std::set<std::string> tables;
  int held_out = 0;
  for (const MeasuredRow& row : MeasureDevice(device, SmallPlan())) {
    values[row.table + " " + row.point] = row.value;
    tables.insert(row.table);
    held_out += row.held_out ? 1 : 0;
  }
  for (const char* table :
       {"dispatch", "op_issue", "gemm.fp32", "gemm.bf16", "attention.bf16.forward.causal",
        "attention.fp32.backward.full", "memory.elementwise", "memory.optimizer", "clock.bf16",
        "copy.latency", "copy.to_host", "copy.to_device", "device.memory"}) {
    EXPECT_TRUE(tables.contains(table)) << table;
  }
  EXPECT_EQ(held_out, 2);                                         // one product of either type
  EXPECT_DOUBLE_EQ(values.at("gemm.bf16 m8_n8_k16"), kTick / 3);  // three products a call
  EXPECT_DOUBLE_EQ(values.at("copy.to_host "), kTick / 1'000);    // a tick for 1000 bytes
  EXPECT_DOUBLE_EQ(values.at("clock.bf16 burst"), kTick);
  EXPECT_DOUBLE_EQ(values.at("clock.bf16 sustained"), kTick);
  EXPECT_EQ(values.at("device.workspace "), 11);
  EXPECT_EQ(values.at("device.memory "), 22);
}

}  // namespace
}  // namespace isthmus::backend
