#include "reports/comparison.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "reports/analysis.h"
#include "reports/internal/critical_path.h"
#include "reports/internal/joined_events.h"
#include "reports/internal/path_error.h"
#include "reports/internal/run_record.h"
#include "reports/internal/window.h"

namespace isthmus::reports {
namespace {

constexpr double kPicosecond = 1e-12;

double Seconds(std::int64_t time_ps) { return static_cast<double>(time_ps) * kPicosecond; }

Figures FiguresOf(const traces::Trace& trace) {
  Analysis analysis;
  traces::Replay(trace, analysis);
  return analysis.figures();
}

RunRecord RecordOf(const traces::Trace& trace) {
  RunRecord record(trace.header);
  for (const traces::Event& event : trace.events) record.Add(event);
  record.Finish(trace.trailer);
  return record;
}

// The value below which `fraction` of the sorted values lie, by rank.
double Percentile(const std::vector<std::int64_t>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  return Seconds(sorted[static_cast<std::size_t>(std::lround(place))]);
}

std::optional<StepStatistics> StatisticsOf(const traces::Measurement& measurement) {
  const std::size_t warmup = static_cast<std::size_t>(std::max(measurement.num_warmup_steps, 0));
  if (measurement.step_times_ps.size() <= warmup) return std::nullopt;
  std::vector<std::int64_t> times(
      measurement.step_times_ps.begin() + static_cast<std::ptrdiff_t>(warmup),
      measurement.step_times_ps.end());
  std::sort(times.begin(), times.end());
  StepStatistics steps;
  steps.num_steps = static_cast<std::int64_t>(times.size());
  steps.num_warmup_steps = static_cast<std::int64_t>(warmup);
  std::vector<double> seconds;
  for (const std::int64_t time_ps : times) seconds.push_back(Seconds(time_ps));
  steps.median_s = base::Median(seconds);
  steps.shortest_s = Seconds(times.front());
  steps.longest_s = Seconds(times.back());
  constexpr double kLow = 0.1;
  constexpr double kHigh = 0.9;
  if (steps.median_s > 0) {
    steps.spread = (Percentile(times, kHigh) - Percentile(times, kLow)) / steps.median_s;
  }
  return steps;
}

PathError ErrorAlong(const CriticalPath& path, const RunRecord& predicted,
                     const Window& predicted_window, const RunRecord& measured,
                     const Window& measured_window) {
  const PathCost before = PriceAlong(path, predicted, predicted_window);
  const PathCost after = PriceAlong(path, measured, measured_window);
  return {.compute = {before.compute, after.compute},
          .collective = {before.collective, after.collective},
          .wait = {before.wait, after.wait},
          .host = {before.host, after.host}};
}

// One rank's uses of a step on both sides.
ComparedRank CompareRank(const ClassTime& predicted, std::int64_t predicted_steps,
                         const ClassTime& measured, std::int64_t measured_steps) {
  ComparedRank row;
  row.rank = measured.representative;
  for (std::size_t use = 0; use < row.uses.size(); ++use) {
    row.uses[use] = {Seconds(predicted.use_ps[use]) / static_cast<double>(predicted_steps),
                     Seconds(measured.use_ps[use]) / static_cast<double>(measured_steps)};
  }
  return row;
}

}  // namespace

Comparison Compare(const AlignedTraces& traces, const ComparisonOptions& options) {
  Comparison result;
  result.predicted = FiguresOf(traces.predicted);
  result.measured = FiguresOf(traces.measured);
  const RunRecord predicted = RecordOf(traces.predicted);
  const RunRecord measured = RecordOf(traces.measured);
  const Window predicted_window =
      WindowOf(traces.predicted.header, traces.predicted.trailer, predicted);
  const Window measured_window =
      WindowOf(traces.measured.header, traces.measured.trailer, measured);
  result.predicted_window_ps = predicted_window.length();
  result.measured_window_ps = measured_window.length();
  result.steps = StatisticsOf(traces.measured.header.measurement);
  result.step_time = {result.predicted.step_time_s,
                      result.steps ? result.steps->median_s : result.measured.step_time_s};
  const CriticalPath path = FindCriticalPath(measured, measured_window);
  result.path = ErrorAlong(path, predicted, predicted_window, measured, measured_window);
  JoinEvents({traces.measured.header, predicted, measured}, path, options.num_worst_ops, result);
  for (std::uint32_t rank = 0; rank < measured.num_classes(); ++rank) {
    result.ranks.push_back(CompareRank(result.predicted.classes[rank], predicted_window.num_steps,
                                       result.measured.classes[rank], measured_window.num_steps));
    result.ranks.back().role = measured.role_of(rank).name;
  }
  result.skew = traces.skew;
  // Ends of one collective are so far apart when the clocks agree: no order is finer than that.
  const auto apart = static_cast<std::int64_t>(traces.skew.residual_ps);
  result.problems = traces::CheckMeasured(
      traces.measured, {.skew_ps = std::max(traces::MeasuredCheck{}.skew_ps, apart)});
  result.software = traces.measured.header.measurement.software;
  result.notes = traces.notes;
  return result;
}

}  // namespace isthmus::reports
