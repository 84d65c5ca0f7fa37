// Differences of shipped scenarios under random changes.

#include "studies/what_if.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "scenarios/changes.h"
#include "studies/predict.h"
#include "tests/support/flows.h"

namespace isthmus::studies {
namespace {

constexpr std::uint64_t kFirstSeed = 61'000;
constexpr std::uint64_t kNumSeeds = 60;
constexpr double kMaxOther = 0.05;

const std::vector<std::string> kScenarios = {"scenarios/quickstart.yaml",
                                             "scenarios/examples/llava-16gpu-noncolocated.yaml",
                                             "scenarios/examples/vision-audio-12gpu.yaml",
                                             "scenarios/examples/vlm-16gpu-context-parallel.yaml"};

template <typename T>
const T& AnyOf(base::RandomStream& random, const std::vector<T>& values) {
  return values[static_cast<std::size_t>(
      random.UniformInt(0, static_cast<std::int64_t>(values.size()) - 1))];
}

// One to three changes, each of another key, that each of the scenarios can take.
std::vector<std::string> RandomChanges(base::RandomStream& random) {
  std::vector<std::string> changes;
  const std::int64_t count = random.UniformInt(1, 3);
  for (std::int64_t index = 0; index < count; ++index) {
    const double factor = 0.1 * static_cast<double>(random.UniformInt(1, 30));
    const std::int64_t gpu = random.UniformInt(0, 7);
    const std::string change = AnyOf<std::string>(
        random,
        {fmt::format("cluster.nic.bandwidth={:.1f}x", factor),
         fmt::format("cluster.nvlink.bandwidth={:.1f}x", factor),
         fmt::format("cluster.nic.latency={:.1f}x", factor),
         fmt::format("cluster.slow_gpus=[{{gpu: {}, speed_factor: 0.7}}]", gpu),
         fmt::format(
             "cluster.link_faults=[{{part: nic, node: 0, index: {}, bandwidth_factor: {}}}]", gpu,
             random.UniformInt(0, 1) == 0 ? "0" : "0.5"),
         fmt::format("cluster.jitter={{seed: {}, compute: {{deviation: 0.05}}, communication: "
                     "{{distribution: exponential, deviation: 0.2, stall: {{probability: 0.01, "
                     "time: 1 ms}}}}}}",
                     gpu),
         fmt::format("parameters.clock.bf16.ratio={:.2f}", 0.5 + 0.1 * factor),
         "workload.global_batch=2x", "optimizer.bucket_parameters=100000000"});
    const std::string key = change.substr(0, change.find('=') + 1);
    if (std::ranges::none_of(changes, [&](const auto& other) { return other.starts_with(key); }))
      changes.push_back(change);
  }
  return changes;
}

double StepOf(const std::string& scenario, const std::vector<std::string>& overrides) {
  const auto loaded = scenarios::LoadScenario(scenario, overrides);
  const StepSimulation simulation(loaded);
  return simulation.Predict("test").figures.step_time_s;
}

TEST(WhatIf, TermsSumToTheDifferenceOfTheTwoSteps) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumSeeds; ++seed) {
    base::RandomStream random(seed, "what_if");
    WhatIfOptions options{.scenario = AnyOf(random, kScenarios),
                          .overrides = {},
                          .changes = RandomChanges(random),
                          .commit = "test"};
    SCOPED_TRACE(fmt::format("seed {}: {} --change {}", seed, options.scenario.string(),
                             fmt::join(options.changes, " --change ")));
    if (random.UniformInt(0, 3) == 0 && tests::HasFlows()) options.network = sim::Network::kFlow;
    const reports::StepDifference difference = WhatIf(options);

    std::int64_t base_ps = 0;
    std::int64_t changed_ps = 0;
    for (const reports::DifferenceTerm& term : difference.terms) {
      base_ps += term.base_ps;
      changed_ps += term.changed_ps;
      const bool moves_bytes =
          term.kind == "collective" || term.kind == "p2p" || term.kind == "copy";
      EXPECT_EQ(term.link_kind.empty(), !moves_bytes && !term.category.ends_with("_comm"))
          << term.op << ", " << term.category;
    }
    EXPECT_EQ(base_ps, difference.base.window_ps);
    EXPECT_EQ(changed_ps, difference.changed.window_ps);
    EXPECT_EQ(changed_ps - base_ps, difference.difference_ps());
    const double allowed = kMaxOther * std::abs(static_cast<double>(difference.difference_ps()));
    double other_ps = 0;
    for (std::size_t term = difference.num_named; term < difference.terms.size(); ++term)
      other_ps += std::abs(static_cast<double>(difference.terms[term].difference_ps()));
    EXPECT_LE(other_ps, allowed);

    if (options.network == sim::Network::kFlow) continue;
    // Neither step is another one for being asked about.
    EXPECT_EQ(difference.base.step_time_s, StepOf(options.scenario, {}));
    const auto base = scenarios::LoadScenario(options.scenario);
    EXPECT_EQ(difference.changed.step_time_s,
              StepOf(options.scenario,
                     scenarios::OverridesOf(scenarios::ChangesOf(base, options.changes))));
  }
}

TEST(WhatIf, ThereAndBackIsTheNegativeDifference) {
  const std::string& scenario = kScenarios.back();
  const auto there = WhatIf({.scenario = scenario,
                             .overrides = {},
                             .changes = {"cluster.nic.bandwidth=25 GB/s"},
                             .commit = "test"});
  const auto back = WhatIf({.scenario = scenario,
                            .overrides = {"cluster.nic.bandwidth=25 GB/s"},
                            .changes = {"cluster.nic.bandwidth=50 GB/s"},
                            .commit = "test"});
  EXPECT_GT(there.difference_ps(), 0);
  ASSERT_EQ(there.terms.size(), back.terms.size());
  for (std::size_t index = 0; index < there.terms.size(); ++index) {
    EXPECT_EQ(there.terms[index].op, back.terms[index].op);
    EXPECT_EQ(there.terms[index].difference_ps(), -back.terms[index].difference_ps());
  }
}

}  // namespace
}  // namespace isthmus::studies
