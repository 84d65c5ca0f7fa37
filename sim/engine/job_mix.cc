#include "sim/engine/job_mix.h"

#include <utility>

#include "base/check.h"

namespace isthmus::sim {

JobMix::JobMix(FlowNetwork& network, std::vector<MixedJob> jobs) : network_(network) {
  ISTHMUS_CHECK(!jobs.empty() && jobs.size() <= UINT8_MAX + 1U, "a mix of {} jobs", jobs.size());
  for (MixedJob& job : jobs) {
    job.options.network = &network;
    job.options.job = static_cast<std::uint8_t>(jobs_.size());
    const std::int64_t begin_ps = job.options.start_ps;
    jobs_.push_back({.what = std::move(job), .engine = nullptr, .begin_ps = begin_ps, .runs = {}});
  }
}

EngineResult JobMix::Run() {
  while (true) {
    std::size_t first = 0;
    for (std::size_t job = 1; job < jobs_.size(); ++job)
      if (jobs_[job].NextEvent() < jobs_[first].NextEvent()) first = job;
    const std::int64_t of_ranks = jobs_[first].NextEvent();
    const std::int64_t of_flows = network_.NextEvent();
    const std::int64_t now = std::min(of_ranks, of_flows);
    if (now == FlowNetwork::kNever) break;
    if (of_ranks <= of_flows) {
      HandleNext(first);
    } else {
      AdvanceFlows(now);
    }
    if (EndRuns(now)) break;
  }
  return jobs_.front().engine->Finish();
}

void JobMix::HandleNext(std::size_t number) {
  Job& job = jobs_[number];
  if (job.engine) return job.engine->HandleNext();
  job.what.options.start_ps = job.begin_ps;
  job.engine = std::make_unique<Engine>(*job.what.lowered, job.what.options, job.what.port);
  job.engine->Start();
}

void JobMix::AdvanceFlows(std::int64_t now) {
  for (const FlowTag& tag : network_.Advance(now)) jobs_[tag.job].engine->OnFlowed(tag, now);
  for (const Job& job : jobs_)
    if (job.engine) job.engine->Drain(now);
}

bool JobMix::EndRuns(std::int64_t now) {
  if (jobs_.front().engine && jobs_.front().engine->is_over()) return true;
  for (std::size_t number = 1; number < jobs_.size(); ++number) {
    Job& job = jobs_[number];
    if (!job.engine || !job.engine->is_over()) continue;
    const EngineResult result = job.engine->Finish();
    ISTHMUS_CHECK(!result.deadlock && now > job.begin_ps, "job {} can't be run again", number);
    ++job.runs.num_runs;
    job.runs.length_ps += now - job.begin_ps;
    job.engine = nullptr;
    job.begin_ps = now;
  }
  return false;
}

std::vector<RepeatedRuns> JobMix::others() const {
  std::vector<RepeatedRuns> others;
  for (std::size_t job = 1; job < jobs_.size(); ++job) others.push_back(jobs_[job].runs);
  return others;
}

}  // namespace isthmus::sim
