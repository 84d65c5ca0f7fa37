#include "sim/engine/shared_device.h"

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::sim {
namespace {

using End = std::pair<std::int64_t, std::uint32_t>;

/// Runs the device to its end; returns when each job was over.
std::map<std::uint32_t, std::int64_t> Finish(SharedDevice& device) {
  std::map<std::uint32_t, std::int64_t> ends;
  while (const auto next = device.NextEnd()) {
    device.End(next->first, next->second);
    ends[next->second] = next->first;
  }
  return ends;
}

TEST(SharedDevice, RunsJobsAtFullSpeedWhileThereAreCores) {
  SharedDevice device(2);
  device.Start(0, 1, 100);
  device.Start(30, 2, 50);
  EXPECT_EQ(Finish(device), (std::map<std::uint32_t, std::int64_t>{{2, 80}, {1, 100}}));
}

TEST(SharedDevice, GivesThreeJobsTwoThirdsOfTwoCores) {
  SharedDevice device(2);
  // All at 2/3 of a core until the shortest is over at 20/(2/3) = 30; the others have done 20 and
  // run alone on a core each: 40 - 20 more to 50, 60 - 20 more to 70.
  device.Start(0, 1, 60);
  device.Start(0, 2, 40);
  device.Start(0, 3, 20);
  EXPECT_EQ(Finish(device), (std::map<std::uint32_t, std::int64_t>{{3, 30}, {2, 50}, {1, 70}}));
}

TEST(SharedDevice, RetimesWhenALaterJobComes) {
  SharedDevice device(1);
  device.Start(0, 1, 100);
  EXPECT_EQ(device.NextEnd(), (End{100, 1}));
  // At 40 the first has 60 left; both run at 1/2: the second is over at 40 + 2·20 = 80, when the
  // first has 40 left and the core to itself: 120.
  device.Start(40, 2, 20);
  EXPECT_EQ(Finish(device), (std::map<std::uint32_t, std::int64_t>{{2, 80}, {1, 120}}));
}

TEST(SharedDevice, EndsEqualJobsInOrderOfTheirNumbers) {
  SharedDevice device(1);
  device.Start(0, 9, 10);
  device.Start(0, 4, 10);
  // Both at half speed: 20.
  EXPECT_EQ(device.NextEnd(), (End{20, 4}));
  device.End(20, 4);
  EXPECT_EQ(device.NextEnd(), (End{20, 9}));
}

TEST(SharedDevice, RoundsEndsUpByLessThanAPicosecond) {
  SharedDevice device(2);
  // 10 ps at 2/3 of a core: 15 exactly. The third has 1 ps left then and a core to itself.
  device.Start(0, 1, 10);
  device.Start(0, 2, 10);
  device.Start(0, 3, 11);
  const auto ends = Finish(device);
  EXPECT_EQ(ends.at(1), 15);
  EXPECT_EQ(ends.at(2), 15);
  EXPECT_EQ(ends.at(3), 16);
}

TEST(SharedDevice, LosesNothingOverManyChanges) {
  SharedDevice device(1);
  // One long job beside 1,000 short ones, each at half speed: a short one of 3 ps takes 6 and costs
  // the long one 3. 3·1,000 of its 10,000 done by 6,000; the rest alone: 13,000.
  device.Start(0, 0, 10'000);
  std::int64_t now = 0;
  for (std::uint32_t job = 1; job <= 1'000; ++job) {
    device.Start(now, job, 3);
    const auto next = device.NextEnd();
    ASSERT_EQ(next->second, job);
    now = next->first;
    device.End(now, job);
  }
  EXPECT_EQ(now, 6'000);
  EXPECT_EQ(device.NextEnd(), (End{13'000, 0}));
}

TEST(SharedDevice, HandlesHoursOfWork) {
  SharedDevice device(3);
  // 2,400 s on each of seven jobs at 3/7 of a core: 5,600 s. In scaled picoseconds the product with
  // the number of jobs, 2.4e15 · 1024 · 7, exceeds 2^63.
  const std::int64_t work = 2'400'000'000'000'000;
  for (std::uint32_t job = 0; job < 7; ++job) device.Start(0, job, work);
  EXPECT_EQ(device.NextEnd(), (End{work / 3 * 7, 0}));
}

TEST(SharedDevice, HandlesMonthsOfWorkAndNoMore) {
  // 8e6 s alone; two on one core take 16e6, past the clock's 9.2e6.
  constexpr std::int64_t kWork = 8'000'000'000'000'000'000;
  SharedDevice device(1);
  device.Start(0, 0, kWork);
  EXPECT_EQ(device.NextEnd()->first, kWork);
  device.Start(0, 1, kWork);
  EXPECT_THROW(device.NextEnd(), base::Error);
}

TEST(SharedDevice, SlowsKernelsByWhatElseRunsButNotWhatWasMeasuredBesideOthers) {
  SharedDevice device(2, {1, 0.5});
  // Two jobs on two cores: the kernel at half speed, the other at full. At 30 the other is over,
  // the kernel has 40 - 15 left and full speed: 55.
  device.Start(0, 1, 40);
  device.Start(0, 2, 30, Pace::kAsStated);
  EXPECT_EQ(Finish(device), (std::map<std::uint32_t, std::int64_t>{{2, 30}, {1, 55}}));
}

TEST(SharedDevice, TakesTheLastSpeedWhereMoreRunThanWereMeasured) {
  SharedDevice device(2, {1, 0.5});
  // Four jobs: half a core each, at half speed: 10 takes 40.
  for (std::uint32_t job = 0; job < 4; ++job) device.Start(0, job, 10);
  EXPECT_EQ(device.NextEnd(), (End{40, 0}));
}

TEST(SharedDevice, ChangesItsEpochWithEveryChange) {
  SharedDevice device(1);
  const auto before = device.epoch();
  device.Start(0, 1, 5);
  const auto between = device.epoch();
  EXPECT_NE(before, between);
  device.End(5, 1);
  EXPECT_NE(between, device.epoch());
  EXPECT_EQ(device.num_active(), 0);
  EXPECT_EQ(device.NextEnd(), std::nullopt);
}

}  // namespace
}  // namespace isthmus::sim
