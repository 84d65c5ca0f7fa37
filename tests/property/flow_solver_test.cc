// The solver of the flow network: cases by hand, SimGrid's pitfalls, random flows against a solver
// that fills links one by one.

#include "sim/network/flow_solver.h"

#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/max_min_solver.h"

namespace isthmus {
namespace {

constexpr double kNic = 50e9;  // a byte takes 20 ps
constexpr std::int64_t kMs = 1'000'000'000;

struct Start {
  std::int64_t at_ps = 0;
  std::vector<std::uint32_t> links;
  double bytes = 0;
};

/// When each flow ends.
std::vector<std::int64_t> Ends(sim::FlowSolver& solver, const std::vector<Start>& starts) {
  std::vector<std::int64_t> ends(starts.size(), -1);
  std::vector<std::uint32_t> ended;
  const auto take = [&](std::int64_t until) {
    for (auto next = solver.NextEnd(); next && *next <= until; next = solver.NextEnd()) {
      ended.clear();
      solver.TakeEnded(*next, ended);
      EXPECT_FALSE(ended.empty());
      for (const std::uint32_t flow : ended) ends[flow] = *next;
    }
  };
  for (std::uint32_t flow = 0; flow < starts.size(); ++flow) {
    take(starts[flow].at_ps);
    solver.Start(starts[flow].at_ps, flow, starts[flow].links, starts[flow].bytes);
  }
  take(INT64_MAX);
  return ends;
}

class FlowSolverTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      solver_ = sim::LoadFlowSolver();
    } catch (const base::IoError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::vector<std::int64_t> Run(const std::vector<double>& links,
                                const std::vector<Start>& starts) {
    for (const double capacity : links) solver_->AddLink(capacity);
    return Ends(*solver_, starts);
  }

  std::unique_ptr<sim::FlowSolver> solver_;
};

TEST_F(FlowSolverTest, OneFlowHasTheLinkToItself) {
  // 1e9 B at 50e9 B/s: 20 ms.
  EXPECT_EQ(Run({kNic}, {{1000, {0}, 1e9}}), std::vector<std::int64_t>{20 * kMs + 1000});
}

TEST_F(FlowSolverTest, TwoFlowsOnOneLinkShareIt) {
  // Each at 25e9 until the smaller is over: 0.5e9 B in 20 ms; the other has 0.5e9 B left: 10 ms.
  EXPECT_EQ(Run({kNic}, {{0, {0}, 0.5e9}, {0, {0}, 1e9}}),
            (std::vector<std::int64_t>{20 * kMs, 30 * kMs}));
}

TEST_F(FlowSolverTest, AFlowThroughTwoBottlenecksTakesTheSmaller) {
  // Link 0 is shared by two (25e9 each), link 1 gives 10e9: the long flow takes 10e9 and leaves
  // 40e9 of link 0. 1e9 B: 100 ms and 25 ms.
  EXPECT_EQ(Run({kNic, 10e9}, {{0, {0, 1}, 1e9}, {0, {0}, 1e9}}),
            (std::vector<std::int64_t>{100 * kMs, 25 * kMs}));
}

TEST_F(FlowSolverTest, ALinkNamedTwiceIsTakenTwice) {
  // A flow that stands for two: 25e9 each, 40 ms; beside another one a third each: 60 ms.
  EXPECT_EQ(Run({kNic}, {{0, {0, 0}, 1e9}}), std::vector<std::int64_t>{40 * kMs});
  solver_.reset();
  solver_ = sim::LoadFlowSolver();
  EXPECT_EQ(Run({kNic}, {{0, {0, 0}, 1e9}, {0, {0}, 1e9}}),
            (std::vector<std::int64_t>{60 * kMs, 60 * kMs}));
}

TEST_F(FlowSolverTest, OlderFlowsSlowDownWhenNewOnesJoinTheirFirstLink) {
  // SimGrid with link latencies left older flows at stale rates here: 150 % of the link. Flow 0
  // alone for 10 ms, then three share: 0.5e9 B left at 50/3 e9 B/s is 30 ms; the others then have
  // 0.5e9 B left for 25e9 each, 20 ms.
  EXPECT_EQ(Run({kNic, kNic, kNic, kNic},
                {{0, {0, 1}, 1e9}, {10 * kMs, {0, 2}, 1e9}, {10 * kMs, {0, 3}, 1e9}}),
            (std::vector<std::int64_t>{40 * kMs, 60 * kMs, 60 * kMs}));
}

TEST_F(FlowSolverTest, FlowsWhoseLatenciesDifferShareEqually) {
  // SimGrid weighs flows by their links' latencies. Ours are paid before: a flow that comes 4 ms
  // later for its longer way still gets half. 1e9 B each at 50e9 B/s: flow 0 has 0.8e9 B left at
  // 4 ms, 32 ms more at half the rate; flow 1 has then 0.2e9 B left: 4 ms.
  EXPECT_EQ(Run({kNic}, {{0, {0}, 1e9}, {4 * kMs, {0}, 1e9}}),
            (std::vector<std::int64_t>{36 * kMs, 40 * kMs}));
}

TEST_F(FlowSolverTest, EndsAPicosecondApartAreTwoEnds) {
  // SimGrid's run_until may come back 10 µs of its seconds early and takes ends within 1 ns for
  // one; here 20 ps lie between them, after 10 s.
  const std::int64_t late = 10'000 * kMs;
  EXPECT_EQ(Run({kNic, kNic, 1e12}, {{0, {0}, 5e11 + 1}, {0, {1}, 5e11}, {late, {2}, 1}}),
            (std::vector<std::int64_t>{late + 20, late, late + 1}));
}

TEST_F(FlowSolverTest, LinksMayComeLater) {
  solver_->AddLink(kNic);
  const std::vector<std::uint32_t> first{0};
  const std::vector<std::uint32_t> second{1};
  solver_->Start(0, 0, first, 1e9);
  solver_->AddLink(2 * kNic);
  solver_->Start(5 * kMs, 1, second, 1e9);
  EXPECT_EQ(solver_->NextEnd(), 15 * kMs);
  std::vector<std::uint32_t> ended;
  solver_->TakeEnded(15 * kMs, ended);
  EXPECT_EQ(ended, second);
  EXPECT_EQ(solver_->NextEnd(), 20 * kMs);
}

TEST_F(FlowSolverTest, ThereIsOneAtATime) {
  EXPECT_THROW((void)sim::LoadFlowSolver(), std::logic_error);
}

TEST_F(FlowSolverTest, ForgetsWhatTheProcessDidBefore) {
  // SimGrid's clock goes on from engine to engine: after 100,000 s its doubles are 12 ps apart.
  // What lies elsewhere in memory must not count either.
  const std::vector<double> links = {kNic, 30e9, 10e9, 7e9};
  base::RandomStream random(7, "flows");
  std::vector<Start> starts;
  std::int64_t now = 0;
  for (std::uint32_t flow = 0; flow < 60; ++flow) {
    now += random.UniformInt(1, 1'000'000);
    const auto bytes = static_cast<double>(random.UniformInt(1, 2'000'000));
    starts.push_back({now, {flow % 4, (flow + 1 + flow / 4 % 3) % 4}, bytes});
  }
  const std::vector<std::int64_t> first = Run(links, starts);
  std::vector<std::vector<char>> in_the_way;
  for (std::size_t size = 1; size < 4096; size += 7) in_the_way.emplace_back(size);
  for (std::size_t at = 0; at < in_the_way.size(); at += 2) in_the_way[at] = {};
  solver_.reset();
  solver_ = sim::LoadFlowSolver();
  Run({1.0}, {{0, {0}, 1e5}});
  solver_.reset();
  solver_ = sim::LoadFlowSolver();
  EXPECT_EQ(Run(links, starts), first);
}

TEST_F(FlowSolverTest, AgreesWithFillingLinksOneByOne) {
  base::RandomStream random(2026, "flows");
  for (int round = 0; round < 40; ++round) {
    if (round > 0) {
      solver_.reset();
      solver_ = sim::LoadFlowSolver();
    }
    std::vector<double> links;
    const std::int64_t num_links = random.UniformInt(1, 12);
    for (std::int64_t link = 0; link < num_links; ++link)
      links.push_back(static_cast<double>(random.UniformInt(1, 40)) * 10e9);
    std::vector<Start> starts;
    std::int64_t now = 0;
    const std::int64_t num_flows = random.UniformInt(1, 60);
    for (std::int64_t flow = 0; flow < num_flows; ++flow) {
      if (random.Chance(0.6)) now += random.UniformInt(1, 30'000'000);
      Start start{.at_ps = now, .bytes = static_cast<double>(random.UniformInt(1, 2'000'000))};
      for (std::uint32_t link = 0; link < links.size(); ++link)
        if (random.Chance(0.3)) start.links.push_back(link);
      if (start.links.empty()) start.links.push_back(0);
      starts.push_back(std::move(start));
    }
    tests::MaxMinSolver judge;
    for (const double capacity : links) judge.AddLink(capacity);
    const std::vector<std::int64_t> expected = Ends(judge, starts);
    const std::vector<std::int64_t> ends = Run(links, starts);
    for (std::size_t flow = 0; flow < starts.size(); ++flow) {
      // Each rounds at every start and end that it sees: half a picosecond of progress.
      EXPECT_NEAR(static_cast<double>(ends[flow]), static_cast<double>(expected[flow]), 3.0)
          << "round " << round << " flow " << flow;
    }
  }
}

}  // namespace
}  // namespace isthmus
