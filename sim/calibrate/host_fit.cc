#include "sim/calibrate/host_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"
#include "sim/calibrate/measured_shape.h"
#include "sim/cost/cpu_kernel_model.h"
#include "sim/cost/gloo_model.h"

namespace isthmus::sim {
namespace {

using profiles::Mark;
using profiles::Parameter;
using profiles::ProfileBuilder;
using traces::MeasuredRow;

constexpr double kVerdictMargin = 0.05;  // of a host's memory: other processes come and go

std::string SourceOf(const MeasuredRow& row) {
  return fmt::format("{} samples on the machine", row.num_samples);
}

Parameter Measured(double value, const char* unit, const MeasuredRow& row) {
  Parameter parameter{
      .value = value, .unit = unit, .mark = Mark::kMeasured, .source = SourceOf(row)};
  parameter.residual =
      profiles::Residual{.median = row.spread, .p90 = row.spread, .num_rows = row.num_samples};
  return parameter;
}

const MeasuredRow& RowOf(const std::vector<MeasuredRow>& rows, const std::string& table,
                         const std::string& point = "") {
  for (const MeasuredRow& row : rows) {
    if (row.table == table && row.point == point && !row.held_out) {
      if (row.value > 0) return row;
      throw base::Error(fmt::format("the measurement {} {} is {}", table, point, row.value));
    }
  }
  throw base::Error(fmt::format("the measurements have no {} {}", table, point));
}

// What is left for the kernel itself.
double NetOf(double time, double dispatch, double launches) {
  return time - std::min(dispatch * launches, kMaxDispatchShare * time);
}

class HostFit {
 public:
  HostFit(const std::vector<MeasuredRow>& rows, const HostFacts& facts)
      : rows_(rows), facts_(facts), builder_(facts.name, facts.date) {}

  profiles::Profile Fit() && {
    dispatch_ = RowOf(rows_, "dispatch").value;
    builder_.Set("cpu.dispatch", Measured(dispatch_, "s", RowOf(rows_, "dispatch")));
    const MeasuredRow& issue = RowOf(rows_, "op_issue");
    builder_.Set("host.op_issue", Measured(issue.value, "s", issue));
    builder_.Set("host.cores", Fact(facts_.cores, "1", "the operating system"));
    AddKernels();
    AddCommunication();
    AddBusyWait();
    AddSpeeds();
    AddCopies();
    AddMemory();
    return std::move(builder_).Build();
  }

 private:
  static Parameter Fact(double value, const char* unit, const char* source) {
    return {.value = value, .unit = unit, .mark = Mark::kMeasured, .source = source};
  }

  void AddKernels() {
    double best = 0;
    for (const MeasuredRow& row : rows_) {
      const std::optional<MeasuredShape> shape = ParseKernel(row);
      if (row.held_out || !shape) continue;
      const double rate = shape->work / NetOf(row.value, dispatch_, shape->launches);
      builder_.Set(fmt::format("cpu.{}.{}", row.table, row.point),
                   Measured(rate, shape->unit, row));
      if (row.table == "gemm.fp32") best = std::max(best, rate);
    }
    builder_.Set("device.peak_rate.fp32",
                 {.value = best,
                  .unit = "FLOP/s",
                  .mark = Mark::kMeasured,
                  .source = "the fastest product of fp32 that was measured, one thread"});
  }

  // By table, rows with sizes in order.
  std::map<std::string, std::vector<const MeasuredRow*>> CommunicationRows() const {
    std::map<std::string, std::vector<const MeasuredRow*>> tables;
    for (const MeasuredRow& row : rows_) {
      if (!row.held_out && RanksOf(row.table)) tables[row.table].push_back(&row);
    }
    for (auto& [table, rows] : tables)
      std::ranges::stable_sort(rows, {}, [](const MeasuredRow* row) { return SizeOf(*row); });
    return tables;
  }

  void AddCommunication() {
    for (const auto& [table, rows] : CommunicationRows()) {
      const double sharing = std::max(1.0, static_cast<double>(*RanksOf(table)) / facts_.cores);
      std::vector<double> times;
      std::vector<double> cores;
      for (const MeasuredRow* row : rows) {
        times.push_back(RowOf(rows_, table, row->point).value);
        // What the cores can have done in the time; and some time, so that it has a logarithm.
        cores.push_back(std::clamp(row->core_s, 1e-9, row->value / sharing));
      }
      times = base::NeverFalling(times);
      cores = base::NeverFalling(cores);
      for (std::size_t at = 0; at < rows.size(); ++at) {
        const double core = std::min(cores[at], times[at] / sharing);
        const double wait = times[at] - core * sharing;
        const auto key = [&](const char* part) {
          return fmt::format("{}.{}.{}", table, part, rows[at]->point);
        };
        builder_.Set(key("wait"), Measured(wait, "s", *rows[at]));
        builder_.Set(key("core"), Measured(core, "s", *rows[at]));
      }
    }
  }

  // What a message waits longer where all cores are busy: it is handed on by threads that have to
  // wait for a core each time.
  void AddBusyWait() {
    const MeasuredRow& busy = RowOf(rows_, "gloo.p2p.busy", "b16384");
    const MeasuredRow& idle = RowOf(rows_, "gloo.p2p", "b16384");
    const double more = std::max(0.0, busy.value - idle.value - idle.core_s);
    builder_.Set("gloo.busy_wait", Measured(more, "s", busy));
  }

  void AddSpeeds() {
    const double alone = RowOf(rows_, "busy", "k1").value;
    double speed = 1;
    for (int busy = 1;; ++busy) {
      const std::string point = fmt::format("k{}", busy);
      const auto row = std::ranges::find_if(rows_, [&](const MeasuredRow& candidate) {
        return candidate.table == "busy" && candidate.point == point;
      });
      if (row == rows_.end()) return;
      speed = std::min(speed, alone / row->value);
      builder_.Set(fmt::format("host.speed.busy_{}", busy), Measured(speed, "1", *row));
    }
  }

  void AddCopies() {
    const MeasuredRow& row = RowOf(rows_, "copy");
    const double rate = 1 / row.value;
    builder_.Set("copy.latency", Measured(dispatch_, "s", RowOf(rows_, "dispatch")));
    builder_.Set("copy.to_host.bandwidth", Measured(rate, "B/s", row));
    builder_.Set("copy.to_device.bandwidth", Measured(rate, "B/s", row));
  }

  void AddMemory() {
    builder_.Set("device.usable_memory",
                 Fact(static_cast<double>(facts_.memory_bytes), "B", "the operating system"));
    const MeasuredRow& process = RowOf(rows_, "process");
    builder_.Set("ledger.process", Measured(process.value, "B", process));
    builder_.Set("ledger.verdict_margin", {.value = kVerdictMargin,
                                           .unit = "1",
                                           .mark = Mark::kAssumed,
                                           .source = "other processes of the machine"});
  }

  const std::vector<MeasuredRow>& rows_;
  const HostFacts& facts_;
  ProfileBuilder builder_;
  double dispatch_ = 0;
};

// Signed median error and quantiles of each table's rows that were held out.
void AddChecks(const std::vector<HeldOut>& held_out, ProfileBuilder& builder) {
  std::map<std::string, std::vector<double>> errors;
  for (const HeldOut& row : held_out)
    errors[row.table].push_back(row.predicted_s / row.measured_s - 1);
  for (const auto& [table, values] : errors) {
    std::vector<double> sizes;
    for (const double value : values) sizes.push_back(std::fabs(value));
    std::ranges::sort(sizes);
    const std::string prefix = table.starts_with("gloo.") ? table : "cpu." + table;
    Parameter check{
        .value = base::Median(sizes),
        .unit = "1",
        .mark = Mark::kMeasured,
        .source = fmt::format("median error on {} shapes that were held out, signed {:+.3f}",
                              values.size(), base::Median(values))};
    check.residual = profiles::Residual{.median = base::Median(sizes),
                                        .p90 = sizes[(sizes.size() * 9 - 1) / 10],
                                        .num_rows = static_cast<std::int64_t>(sizes.size())};
    builder.Set(prefix + ".check", check);
  }
}

}  // namespace

profiles::Profile FitHost(const std::vector<MeasuredRow>& rows, const HostFacts& facts) {
  profiles::Profile fitted = HostFit(rows, facts).Fit();
  ProfileBuilder checks(facts.name, facts.date);
  AddChecks(PredictHeldOut(rows, fitted), checks);
  return profiles::MergeProfiles(facts.name, {fitted, std::move(checks).Build()});
}

std::vector<HeldOut> PredictHeldOut(const std::vector<MeasuredRow>& rows,
                                    const profiles::Profile& profile) {
  const CpuKernelModel kernels(profile);
  const GlooModel gloo(profile, GlooModel::Staging::kNone);
  const double cores = profile.Number("host.cores");
  std::vector<HeldOut> held_out;
  for (const MeasuredRow& row : rows) {
    if (!row.held_out) continue;
    HeldOut beside{.table = row.table, .point = row.point, .measured_s = row.value};
    if (const auto shape = ParseKernel(row)) {
      for (const plan::Kernel& kernel : shape->kernels)
        beside.predicted_s += (kernels.Time(kernel) + kernels.LaunchGap(kernel)).value();
    } else if (const auto num_ranks = RanksOf(row.table)) {
      const auto [time, core] = PriceCommunication(gloo, row, *num_ranks);
      beside.predicted_s = time - core + core * std::max(1.0, *num_ranks / cores);
    } else {
      continue;
    }
    held_out.push_back(std::move(beside));
  }
  return held_out;
}

}  // namespace isthmus::sim
