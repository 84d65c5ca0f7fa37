#include "backend/torch/measure/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "base/statistics.h"

namespace isthmus::backend {
namespace {

constexpr double kSampleTime = 200e-6;
constexpr std::size_t kFewestSamples = 3;
constexpr std::size_t kMostSamples = 25;

double Read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

traces::MeasuredRow RowOf(const Samples& samples, double value, std::string table,
                          std::string point, bool held_out) {
  return {.table = std::move(table),
          .point = std::move(point),
          .held_out = held_out,
          .value = value,
          .spread = base::RelativeSpread(samples.values, value),
          .num_samples = static_cast<std::int64_t>(samples.values.size())};
}

}  // namespace

double WallTime() { return Read(CLOCK_MONOTONIC); }
double ThreadTime() { return Read(CLOCK_THREAD_CPUTIME_ID); }
double ProcessTime() { return Read(CLOCK_PROCESS_CPUTIME_ID); }

traces::MeasuredRow Samples::ToRow(std::string table, std::string point, bool held_out) const {
  return RowOf(*this, base::HalfSampleMode(values), std::move(table), std::move(point), held_out);
}

traces::MeasuredRow Samples::ToMedianRow(std::string table, std::string point,
                                         bool held_out) const {
  return RowOf(*this, base::Median(values), std::move(table), std::move(point), held_out);
}

Samples TimeOnThread(const std::function<void()>& run, double budget_s) {
  run();
  double begin = ThreadTime();
  run();
  const double once = std::max(ThreadTime() - begin, 1e-8);
  const auto calls = static_cast<std::int64_t>(std::ceil(kSampleTime / once));
  Samples samples;
  double used = 0;
  while (samples.values.size() < kMostSamples &&
         (used < budget_s || samples.values.size() < kFewestSamples)) {
    begin = ThreadTime();
    for (std::int64_t call = 0; call < calls; ++call) run();
    const double time = ThreadTime() - begin;
    used += time;
    samples.values.push_back(time / static_cast<double>(calls));
  }
  return samples;
}

}  // namespace isthmus::backend
