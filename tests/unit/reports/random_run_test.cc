#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "reports/internal/exact_sum.h"
#include "tests/unit/reports/run_builder.h"

namespace isthmus::reports {
namespace {

using traces::Category;

// A consistent run of random ops: made in a global order, every op timed by what it waits for.
class RandomRun {
 public:
  RandomRun(std::uint64_t seed, bool with_waits)
      : random_(seed, "reports.run"), waits_(with_waits) {
    num_classes_ = static_cast<std::uint32_t>(random_.UniformInt(1, 4));
    std::vector<std::uint32_t> everyone(num_classes_);
    std::iota(everyone.begin(), everyone.end(), 0U);
    run.header.groups = {everyone};
    for (std::uint32_t index = 0; index < num_classes_; ++index) {
      run.AddClass("role", static_cast<std::int32_t>(random_.UniformInt(1, 8)), {0}, everyone);
    }
    free_.assign(num_classes_, std::vector<std::int64_t>(5, 0));
    ready_.resize(num_classes_);
    const auto num_ops = random_.UniformInt(1, 80);
    for (std::int64_t index = 0; index < num_ops; ++index) AddOp();
  }

  RunBuilder run;
  std::int64_t imposed_host_ps = 0;

 private:
  // Draws dependencies of the class's next op and returns when it is ready on `lane`.
  std::int64_t Draw(std::uint32_t rank_class, std::uint16_t lane,
                    std::vector<traces::Dependency>& dependencies) {
    std::int64_t issue = free_[rank_class][lane];
    const auto num_ready = static_cast<std::int64_t>(ready_[rank_class].size());
    for (std::int64_t count = random_.UniformInt(0, 2); count > 0 && num_ready > 0; --count) {
      const auto& [dependency, time] = ready_[rank_class][static_cast<std::size_t>(
          random_.UniformInt(std::max<std::int64_t>(0, num_ready - 5), num_ready - 1))];
      dependencies.push_back(dependency);
      issue = std::max(issue, time);
    }
    if (waits_ && random_.Chance(0.1)) {
      const std::int64_t until = issue + random_.UniformInt(1, 9);
      run.trailer.waits.push_back({rank_class, 0, issue, until, random_.Chance(0.5)});
      issue = until;
    }
    return issue;
  }

  void Ready(std::uint32_t rank_class, traces::Dependency dependency, std::int64_t end) {
    ready_[rank_class].emplace_back(dependency, end);
  }

  std::uint32_t AnyClass() {
    return static_cast<std::uint32_t>(random_.UniformInt(0, num_classes_ - 1));
  }

  void AddOp() {
    const auto kind = random_.UniformInt(0, 9);
    if (kind < 5) return AddLocal(RunBuilder::kComputeLane, "compute", Category::kCompute);
    if (kind == 5) return AddLocal(RunBuilder::kCopyLane, "copy", Category::kCopy);
    if (kind < 8 || num_classes_ == 1) return AddMatched(random_.Chance(0.5));
    AddTransfer();
  }

  void AddLocal(std::uint16_t lane, const std::string& kind, Category category) {
    const std::uint32_t rank_class = AnyClass();
    std::vector<traces::Dependency> dependencies;
    const std::int64_t start = Draw(rank_class, lane, dependencies);
    const std::int64_t end = start + random_.UniformInt(0, 20);
    const auto op = run.Add(rank_class,
                            {.name = kind,
                             .category = category,
                             .kind = kind,
                             .lane = lane,
                             .dependencies = dependencies},
                            start, start, end);
    free_[rank_class][lane] = end;
    Ready(rank_class, {op}, end);
  }

  // A collective, or a compute with inner communication, over everyone.
  void AddMatched(bool compute) {
    const std::uint16_t lane = compute ? RunBuilder::kComputeLane : RunBuilder::kCommLane;
    std::vector<std::vector<traces::Dependency>> dependencies(num_classes_);
    std::vector<std::int64_t> issues;
    for (std::uint32_t index = 0; index < num_classes_; ++index) {
      issues.push_back(Draw(index, lane, dependencies[index]));
    }
    const std::int64_t start = *std::max_element(issues.begin(), issues.end());
    const std::int64_t inner = random_.UniformInt(0, 10);
    const std::int64_t end = start + inner + random_.UniformInt(1, 20);
    for (std::uint32_t index = 0; index < num_classes_; ++index) {
      traces::OpRecord record{.name = "matched",
                              .category = Category::kTpComm,
                              .kind = "collective",
                              .lane = lane,
                              .group = 1,
                              .dependencies = dependencies[index]};
      if (compute) {
        record.category = Category::kCompute;
        record.kind = "compute";
        record.inner_shares = {{Category::kCompute, end - start - inner},
                               {Category::kTpComm, inner}};
      }
      const auto op = run.Add(index, std::move(record), issues[index], start, end);
      free_[index][lane] = end;
      Ready(index, {op}, end);
    }
  }

  void AddTransfer() {
    const std::uint32_t from = AnyClass();
    const std::uint32_t to = (from + 1) % num_classes_;
    std::vector<traces::Dependency> from_waits;
    std::vector<traces::Dependency> to_waits;
    const std::int64_t sent = Draw(from, RunBuilder::kP2PLane, from_waits);
    const std::int64_t posted = Draw(to, RunBuilder::kP2PLane, to_waits);
    const std::int64_t start = std::max(sent, posted);
    const std::int64_t end = start + random_.UniformInt(0, 10);
    const auto send = run.Transfer(from, true, to, sent, start, end, from_waits);
    const auto receive = run.Transfer(to, false, from, posted, start, end, to_waits);
    free_[from][RunBuilder::kP2PLane] = sent;
    free_[to][RunBuilder::kP2PLane] = posted;
    Ready(from, {send, 1}, end);
    Ready(to, {receive, 1}, end);
  }

  base::RandomStream random_;
  bool waits_;
  std::uint32_t num_classes_ = 0;
  std::vector<std::vector<std::int64_t>> free_;  // by class and lane
  std::vector<std::vector<std::pair<traces::Dependency, std::int64_t>>> ready_;
};

void ExpectWholeTimeIsBooked(const Figures& figures) {
  for (const ClassTime& time : figures.classes) {
    EXPECT_EQ(std::accumulate(time.use_ps.begin(), time.use_ps.end(), std::int64_t{0}),
              figures.window_ps);
    for (const std::int64_t part : time.use_ps) EXPECT_GE(part, 0);
    EXPECT_EQ(std::accumulate(time.exposed_ps.begin(), time.exposed_ps.end(), std::int64_t{0}),
              time.use_ps[static_cast<std::size_t>(TimeUse::kExposedComm)]);
  }
  EXPECT_EQ(figures.critical_path_ps, figures.window_ps);
  if (figures.window_ps == 0) return;
  EXPECT_EQ(std::accumulate(figures.shares.begin(), figures.shares.end(), 0.0), 1.0);
  double path = 0;
  for (const PathShare& share : figures.critical_path) path += share.share;
  EXPECT_EQ(path, 1.0);
}

TEST(RandomRunTest, EveryPicosecondIsBookedOnceAndNothingStaysUnexplained) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Figures figures = RandomRun(seed, false).run.Analyse();
    ExpectWholeTimeIsBooked(figures);
    // Every op starts when what it waits for is there, so no gap is the host's.
    for (std::size_t index = 0; index < figures.classes.size(); ++index) {
      EXPECT_EQ(Use(figures, index, TimeUse::kHost), 0);
    }
    EXPECT_EQ(PathShareOf(figures, "host"), 0);
    EXPECT_EQ(PathShareOf(figures, "straggler"), 0);
    if (HasFailure()) break;
  }
}

TEST(RandomRunTest, OnlyImposedWaitsAreTheHosts) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun random(seed, true);
    const Figures figures = random.run.Analyse();
    ExpectWholeTimeIsBooked(figures);
    for (std::size_t index = 0; index < figures.classes.size(); ++index) {
      std::int64_t imposed = 0;
      for (const traces::ImposedWait& wait : random.run.trailer.waits) {
        if (wait.rank_class == index && !wait.straggler) imposed += wait.end_ps - wait.start_ps;
      }
      EXPECT_LE(Use(figures, index, TimeUse::kHost), imposed);
    }
    if (HasFailure()) break;
  }
}

TEST(RandomRunTest, JitterAndMissingEventsLoseNoTime) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun random(seed, true);
    base::RandomStream jitter(seed, "reports.jitter");
    std::vector<traces::Event> events;
    for (traces::Event event : random.run.events) {
      event.issue_ps += jitter.UniformInt(-4, 4);
      event.start_ps += jitter.UniformInt(-4, 4);
      event.end_ps += jitter.UniformInt(-4, 4);
      if (!jitter.Chance(0.05)) events.push_back(event);
    }
    random.run.events = events;
    ExpectWholeTimeIsBooked(random.run.Analyse());
    if (HasFailure()) break;
  }
}

TEST(ExactSumTest, FractionsOfRandomWeightsAddUpToOne) {
  base::RandomStream random(1, "reports.fractions");
  for (int round = 0; round < 20'000; ++round) {
    std::vector<double> weights(static_cast<std::size_t>(random.UniformInt(1, 12)));
    double sum = 0;
    for (double& weight : weights) {
      weight = random.Chance(0.2) ? 0 : static_cast<double>(random.UniformInt(1, 1'000'000'007));
      sum += weight;
    }
    const std::vector<double> before = weights;
    MakeFractions(weights);
    if (sum == 0) continue;
    ASSERT_EQ(std::accumulate(weights.begin(), weights.end(), 0.0), 1.0) << round;
    for (std::size_t index = 0; index < weights.size(); ++index) {
      ASSERT_NEAR(weights[index], before[index] / sum, 1e-15) << round;
    }
  }
}

}  // namespace
}  // namespace isthmus::reports
