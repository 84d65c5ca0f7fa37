#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/network/flow_network.h"

namespace isthmus::sim {

/// A job of a mix.
struct MixedJob {
  const Lowered* lowered = nullptr;
  EngineOptions options;  // network, job and, when it is run again, start_ps are the mix's
  EventPort port;
};

/// A job beside the first: the runs of its program that were over before the first job was.
struct RepeatedRuns {
  std::int64_t num_runs = 0;
  std::int64_t length_ps = 0;  // of all of them, which follow each other without a gap
};

/// Jobs that run at the same time on one flow network.
///
/// The first job runs once. Every other one begins at its start_ps, and again as soon as it is
/// over, for as long as the first one runs. Every job has an engine of its own; only flows meet,
/// and all jobs react to what that does to them. Where they share no link that may be short, each
/// does what it would do alone (of flows that share links within a job the solver may round other
/// picoseconds).
///
/// What happens to ranks at an instant comes before flows, so that what they start joins in at
/// once; between jobs the lower number comes first. Deterministic. One object runs once. Not
/// thread-safe. Lifetime: the network and what the jobs refer to must outlive it. Cost: that of the
/// engines, and a comparison a job per event.
class JobMix {
 public:
  /// At most 256 jobs; FlowTag::job is their number.
  JobMix(FlowNetwork& network, std::vector<MixedJob> jobs);

  /// What became of the first job.
  EngineResult Run();

  /// Of the job, the one that runs now: whose flows are on the network.
  const Engine& engine(std::uint8_t job) const { return *jobs_[job].engine; }
  /// Of the jobs behind the first, after Run().
  std::vector<RepeatedRuns> others() const;

 private:
  struct Job {
    MixedJob what;
    std::unique_ptr<Engine> engine;  // absent before it begins, and between its runs
    std::int64_t begin_ps = 0;       // of the next run
    RepeatedRuns runs;

    std::int64_t NextEvent() const { return engine ? engine->NextEvent() : begin_ps; }
  };

  void HandleNext(std::size_t number);
  void AdvanceFlows(std::int64_t now);
  /// Ends runs that are over. Whether the first job's is.
  bool EndRuns(std::int64_t now);

  FlowNetwork& network_;
  std::vector<Job> jobs_;
};

}  // namespace isthmus::sim
