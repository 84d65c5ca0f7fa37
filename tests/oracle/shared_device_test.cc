// Ranks that share a device against SimGrid's host of several cores.

#include "sim/engine/shared_device.h"

#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/oracle/simgrid_run.h"

namespace isthmus {
namespace {

constexpr double kPs = 1e-12;

/// Our device through starts and ends in order of time; ends come first at equal times.
std::vector<double> EndsOnOurDevice(int cores, const std::vector<oracle::SharedJob>& jobs) {
  std::multimap<std::int64_t, std::uint32_t> starts;
  std::vector<std::int64_t> work_ps;
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    starts.emplace(std::llround(jobs[job].start_s / kPs), job);
    work_ps.push_back(std::llround(jobs[job].work_s / kPs));
  }
  sim::SharedDevice device(cores);
  std::vector<double> ends(jobs.size(), 0);
  auto next_start = starts.begin();
  while (next_start != starts.end() || device.num_active() > 0) {
    const auto end = device.NextEnd();
    if (end && (next_start == starts.end() || end->first <= next_start->first)) {
      device.End(end->first, end->second);
      ends[end->second] = static_cast<double>(end->first) * kPs;
    } else {
      device.Start(next_start->first, next_start->second, work_ps[next_start->second]);
      ++next_start;
    }
  }
  return ends;
}

TEST(SharedDeviceOracle, AgreesWithSimGridOnRandomJobs) {
  base::RandomStream random(2026, "shared jobs");
  for (int round = 0; round < 60; ++round) {
    const int cores = static_cast<int>(random.UniformInt(1, 4));
    std::vector<oracle::SharedJob> jobs;
    const std::int64_t num_jobs = random.UniformInt(1, 12);
    for (std::int64_t job = 0; job < num_jobs; ++job) {
      // Whole milliseconds, so that several jobs often start or end together.
      jobs.push_back({.start_s = static_cast<double>(random.UniformInt(0, 40)) * 1e-3,
                      .work_s = static_cast<double>(random.UniformInt(1, 30)) * 1e-3});
    }
    const std::vector<double> ours = EndsOnOurDevice(cores, jobs);
    const std::vector<double> theirs = oracle::EndsOnSharedHost(cores, jobs);
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      // SimGrid's own precision is 1 ns per event.
      EXPECT_NEAR(ours[job], theirs[job], 30e-9) << "round " << round << " job " << job;
    }
  }
}

}  // namespace
}  // namespace isthmus
