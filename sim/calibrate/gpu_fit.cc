#include "sim/calibrate/gpu_fit.h"

#include <algorithm>
#include <utility>

#include "sim/calibrate/fit_parts.h"

namespace isthmus::sim {
namespace {

using profiles::ProfileBuilder;
using traces::MeasuredRow;

constexpr double kVerdictMargin = 0.015;
// As software.yaml has them for CUDA and PyTorch's allocator.
constexpr double kContext = 536'870'912;
constexpr double kReservedFactor = 1.01;
constexpr double kReservedConstant = 644'245'094;
constexpr double kEagerReservedFactor = 1.07;

void AddClock(const std::vector<MeasuredRow>& rows, ProfileBuilder& builder) {
  const MeasuredRow& burst = RowOf(rows, "clock.bf16", "burst");
  const MeasuredRow& sustained = RowOf(rows, "clock.bf16", "sustained");
  builder.Set("clock.bf16.ratio",
              Measured(std::min(1.0, burst.value / sustained.value), "1", sustained));
}

void AddCopies(const std::vector<MeasuredRow>& rows, ProfileBuilder& builder) {
  const MeasuredRow& latency = RowOf(rows, "copy.latency");
  builder.Set("copy.latency", Measured(latency.value, "s", latency));
  for (const char* table : {"copy.to_host", "copy.to_device"}) {
    const MeasuredRow& row = RowOf(rows, table);
    builder.Set(std::string(table) + ".bandwidth", Measured(1 / row.value, "B/s", row));
  }
}

void AddMemory(const std::vector<MeasuredRow>& rows, ProfileBuilder& builder) {
  const auto copy = [&](const char* table, const char* key) {
    const MeasuredRow& row = RowOf(rows, table);
    builder.Set(key, Measured(row.value, "B", row));
  };
  copy("device.memory", "device.usable_memory");
  copy("device.workspace", "ledger.workspace");
  builder.Set("ledger.cuda_context", Assumed(kContext, "B", "profiles/software.yaml"));
  builder.Set("ledger.nccl_per_communicator",
              Assumed(0, "B", "ranks that share a GPU talk over Gloo"));
  builder.Set("ledger.reserved.factor", Assumed(kReservedFactor, "1", "profiles/software.yaml"));
  builder.Set("ledger.reserved.constant",
              Assumed(kReservedConstant, "B", "profiles/software.yaml"));
  builder.Set("ledger.reserved.eager_factor",
              Assumed(kEagerReservedFactor, "1", "profiles/software.yaml"));
  builder.Set("ledger.verdict_margin", Assumed(kVerdictMargin, "1", "profiles/software.yaml"));
}

}  // namespace

profiles::Profile FitGpu(const std::vector<MeasuredRow>& rows, const GpuFacts& facts) {
  ProfileBuilder builder(facts.name, facts.date);
  for (const auto& [dtype, rate] : AddKernels(rows, "gpu", builder))
    builder.Set("device.peak_rate." + dtype, PeakRate(dtype, rate));
  AddClock(rows, builder);
  AddCommunication(rows, facts.cores, builder);
  AddCopies(rows, builder);
  AddMemory(rows, builder);
  return WithChecks(rows, std::move(builder).Build(), facts.cores);
}

}  // namespace isthmus::sim
