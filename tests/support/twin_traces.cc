#include "tests/support/twin_traces.h"

#include <algorithm>
#include <cmath>

#include "backend/fake/execute.h"
#include "base/check.h"
#include "base/random.h"
#include "scenarios/scenario.h"

namespace isthmus::tests {

traces::Trace Predict(const plan::Program& program, sim::Folding folding) {
  static const topology::Cluster cluster(scenarios::LoadCluster("h100-dgx", 2));
  static const profiles::Profile profile = scenarios::LoadProfile("h100-sxm");
  traces::Recorder recorder;
  const sim::Outcome outcome =
      sim::Simulate(program, cluster, profile, {.folding = folding}, {}, recorder);
  ISTHMUS_CHECK(!outcome.deadlock, "{}", outcome.explanation);
  return recorder.Take();
}

traces::Trace MeasureOnFake(const plan::Program& program) {
  traces::Recorder recorder;
  const backend::Outcome outcome = backend::Execute(program, {}, recorder);
  ISTHMUS_CHECK(!outcome.deadlock, "{}", outcome.explanation);
  return recorder.Take();
}

std::vector<ClockError> RandomClocks(std::uint64_t seed, std::size_t num_ranks,
                                     std::int64_t most_offset_ps, double most_drift) {
  base::RandomStream random(seed, "clocks");
  std::vector<ClockError> clocks;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const std::int64_t offset = random.UniformInt(-most_offset_ps, most_offset_ps);
    clocks.push_back({offset, most_drift * (2 * random.UniformReal() - 1)});
  }
  return clocks;
}

void SkewClocks(const std::vector<ClockError>& clocks, traces::Trace& trace) {
  const std::int64_t middle = trace.trailer.end_ps / 2;
  for (traces::Event& event : trace.events) {
    const ClockError& clock = clocks[event.rank_class];
    for (std::int64_t* time : {&event.issue_ps, &event.start_ps, &event.end_ps}) {
      const auto since = static_cast<double>(*time - middle);
      *time += clock.offset_ps + std::llround(clock.drift * since);
    }
  }
}

std::int64_t LargestDifference(const traces::Trace& one, const traces::Trace& other) {
  ISTHMUS_CHECK(one.events.size() == other.events.size() && !one.events.empty(), "{} and {} events",
                one.events.size(), other.events.size());
  const std::int64_t shift = other.events.front().issue_ps - one.events.front().issue_ps;
  std::int64_t largest = 0;
  for (std::size_t index = 0; index < one.events.size(); ++index) {
    const traces::Event& here = one.events[index];
    const traces::Event& there = other.events[index];
    for (const std::int64_t apart : {there.issue_ps - here.issue_ps, there.start_ps - here.start_ps,
                                     there.end_ps - here.end_ps}) {
      largest = std::max(largest, std::abs(apart - shift));
    }
  }
  return largest;
}

}  // namespace isthmus::tests
