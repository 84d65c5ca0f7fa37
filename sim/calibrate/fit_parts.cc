#include "sim/calibrate/fit_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"
#include "profiles/kernel_tables.h"
#include "sim/calibrate/measured_shape.h"
#include "sim/cost/gloo_model.h"
#include "sim/cost/machine_models.h"

namespace isthmus::sim {
namespace {

using profiles::Mark;
using profiles::Parameter;
using profiles::ProfileBuilder;
using traces::MeasuredRow;

std::string SourceOf(const MeasuredRow& row) {
  return fmt::format("{} samples on the machine", row.num_samples);
}

// What is left for the kernel itself.
double NetOf(double time, double dispatch, double launches) {
  return time - std::min(dispatch * launches, kMaxDispatchShare * time);
}

// Ranks a core while a row was measured.
double SharingOf(const MeasuredRow& row, double cores) {
  if (row.busy_ranks < 2) {
    throw base::Error(fmt::format("the measurement {} {} does not say how many ranks were busy",
                                  row.table, row.point));
  }
  return std::max(1.0, row.busy_ranks / cores);
}

// By table, rows with sizes in order.
std::map<std::string, std::vector<const MeasuredRow*>> CommunicationRows(
    const std::vector<MeasuredRow>& rows) {
  std::map<std::string, std::vector<const MeasuredRow*>> tables;
  for (const MeasuredRow& row : rows) {
    if (!row.held_out && RanksOf(row.table)) tables[row.table].push_back(&row);
  }
  for (auto& [table, sizes] : tables)
    std::ranges::stable_sort(sizes, {}, [](const MeasuredRow* row) { return SizeOf(*row); });
  return tables;
}

// Signed median error and quantiles of each table's rows that were held out.
void AddChecks(const std::vector<HeldOut>& held_out, const std::string& tables,
               ProfileBuilder& builder) {
  std::map<std::string, std::vector<double>> errors;
  for (const HeldOut& row : held_out)
    errors[row.table].push_back(row.predicted_s / row.measured_s - 1);
  for (const auto& [table, values] : errors) {
    std::vector<double> sizes;
    for (const double value : values) sizes.push_back(std::fabs(value));
    std::ranges::sort(sizes);
    const bool is_message = table.starts_with("gloo.") || table.starts_with("staged.");
    const std::string prefix = is_message ? table : fmt::format("{}.{}", tables, table);
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

Parameter Measured(double value, const char* unit, const MeasuredRow& row) {
  Parameter parameter{
      .value = value, .unit = unit, .mark = Mark::kMeasured, .source = SourceOf(row)};
  parameter.residual =
      profiles::Residual{.median = row.spread, .p90 = row.spread, .num_rows = row.num_samples};
  return parameter;
}

Parameter Fact(double value, const char* unit, const char* source) {
  return {.value = value, .unit = unit, .mark = Mark::kMeasured, .source = source};
}

Parameter Assumed(double value, const char* unit, const char* source) {
  return {.value = value, .unit = unit, .mark = Mark::kAssumed, .source = source};
}

const MeasuredRow& RowOf(const std::vector<MeasuredRow>& rows, const std::string& table,
                         const std::string& point) {
  for (const MeasuredRow& row : rows) {
    if (row.table == table && row.point == point && !row.held_out) {
      if (row.value > 0) return row;
      throw base::Error(fmt::format("the measurement {} {} is {}", table, point, row.value));
    }
  }
  throw base::Error(fmt::format("the measurements have no {} {}", table, point));
}

std::map<std::string, double> AddKernels(const std::vector<MeasuredRow>& rows,
                                         const std::string& prefix, ProfileBuilder& builder) {
  const MeasuredRow& dispatch = RowOf(rows, "dispatch");
  builder.Set(prefix + ".dispatch", Measured(dispatch.value, "s", dispatch));
  const MeasuredRow& issue = RowOf(rows, "op_issue");
  builder.Set("host.op_issue", Measured(issue.value, "s", issue));
  const std::string products = "gemm.";
  std::map<std::string, double> fastest;
  for (const MeasuredRow& row : rows) {
    const std::optional<MeasuredShape> shape = ParseKernel(row);
    if (row.held_out || !shape) continue;
    const double rate = shape->work / NetOf(row.value, dispatch.value, shape->launches);
    builder.Set(fmt::format("{}.{}.{}", prefix, row.table, row.point),
                Measured(rate, shape->unit, row));
    if (!row.table.starts_with(products)) continue;
    double& of_type = fastest[row.table.substr(products.size())];
    of_type = std::max(of_type, rate);
  }
  return fastest;
}

Parameter PeakRate(const std::string& dtype, double rate) {
  const std::string source = fmt::format("the fastest product of {} that was measured", dtype);
  return Fact(rate, "FLOP/s", source.c_str());
}

void AddCommunication(const std::vector<MeasuredRow>& rows, int cores, ProfileBuilder& builder) {
  for (const auto& entry : CommunicationRows(rows)) {
    const std::string& table = entry.first;
    const std::vector<const MeasuredRow*>& points = entry.second;
    const double sharing = SharingOf(*points.front(), cores);
    std::vector<double> times;
    std::vector<double> core_times;
    for (const MeasuredRow* row : points) {
      times.push_back(RowOf(rows, table, row->point).value);
      // What the cores can have done in the time; and some time, so that it has a logarithm.
      core_times.push_back(std::clamp(row->core_s, 1e-9, row->value / sharing));
    }
    times = base::NeverFalling(times);
    core_times = base::NeverFalling(core_times);
    for (std::size_t at = 0; at < points.size(); ++at) {
      const double core = std::min(core_times[at], times[at] / sharing);
      const double wait = times[at] - core * sharing;
      const auto key = [&](const char* part) {
        return fmt::format("{}.{}.{}", table, part, points[at]->point);
      };
      builder.Set(key("wait"), Measured(wait, "s", *points[at]));
      builder.Set(key("core"), Measured(core, "s", *points[at]));
    }
  }
}

std::vector<HeldOut> PredictHeldOut(const std::vector<MeasuredRow>& rows,
                                    const profiles::Profile& profile, double cores) {
  const auto kernels = MakeComputeModel(profile);
  const GlooModel gloo(profile, GlooModel::Staging::kNone);
  const GlooModel staged(profile, GlooModel::Staging::kThroughHost);
  std::vector<HeldOut> held_out;
  for (const MeasuredRow& row : rows) {
    if (!row.held_out) continue;
    HeldOut beside{.table = row.table, .point = row.point, .measured_s = row.value};
    if (const auto shape = ParseKernel(row)) {
      for (const plan::Kernel& kernel : shape->kernels)
        beside.predicted_s += (kernels->Time(kernel) + kernels->LaunchGap(kernel)).value();
    } else if (const auto num_ranks = RanksOf(row.table)) {
      const bool is_staged = row.table.starts_with("staged.");
      const auto [time, core] = PriceCommunication(is_staged ? staged : gloo, row, *num_ranks);
      beside.predicted_s = time - core + core * SharingOf(row, cores);
    } else {
      continue;
    }
    held_out.push_back(std::move(beside));
  }
  return held_out;
}

profiles::Profile WithChecks(const std::vector<MeasuredRow>& rows, const profiles::Profile& fitted,
                             double cores) {
  ProfileBuilder checks(fitted.name(), fitted.date());
  AddChecks(PredictHeldOut(rows, fitted, cores), profiles::KernelTables(fitted), checks);
  return profiles::MergeProfiles(fitted.name(), {fitted, std::move(checks).Build()});
}

}  // namespace isthmus::sim
