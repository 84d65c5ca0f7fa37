// Ranks that compute on devices they share: work progresses at a rate, ends are re-timed.
#include <algorithm>

#include "base/check.h"
#include "sim/engine/engine.h"

namespace isthmus::sim {

void Engine::StartJob(std::uint32_t cls, Job job, std::int64_t work, Pace pace, std::int64_t now) {
  const auto device = static_cast<std::uint32_t>(device_of(cls));
  devices_[device].Start(now, next_job_, work, pace);
  jobs_.emplace(next_job_++, job);
  ArmDevice(device);
}

void Engine::ArmDevice(std::uint32_t device) {
  const auto next = devices_[device].NextEnd();
  if (!next) return;
  heap_.Push(next->first, {.what = What::kDevice,
                           .a = device,
                           .b = static_cast<std::uint32_t>(devices_[device].epoch())});
}

void Engine::OnDevice(std::uint32_t device, std::uint32_t epoch, std::int64_t now) {
  if (static_cast<std::uint32_t>(devices_[device].epoch()) != epoch) return;  // re-timed since
  const std::uint32_t number = devices_[device].NextEnd()->second;
  devices_[device].End(now, number);
  ArmDevice(device);
  const Job job = jobs_.at(number);
  jobs_.erase(number);
  switch (job.kind) {
    case Job::Kind::kAlone:
      Complete(job.a, job.b, result_.times[job.a].start_ps[job.b],
               result_.times[job.a].start_ps[job.b], now);
      break;
    case Job::Kind::kMember:
      OnMemberOver(job.a, now);
      break;
    case Job::Kind::kMessage:
      EndTransfer(job.a, job.b, now);
      break;
  }
}

const std::vector<Engine::Phase>& Engine::PhasesOf(std::uint32_t cls, std::uint32_t op) {
  const Variant& here = variant(cls);
  const std::int64_t duration = here.duration_ps[op];
  if (here.ops->ops[op].kind != plan::OpKind::kCompute) {
    const std::int64_t core = std::min(here.core_ps[op], duration);
    const auto [at, is_new] = collective_phases_.try_emplace({duration, core});
    if (is_new) at->second.push_back({.wait_ps = duration - core, .core_ps = core});
    return at->second;
  }
  const auto [at, is_new] = phases_.try_emplace(here.work[op]);
  if (!is_new) return at->second;
  Phase phase;
  for (const std::uint32_t index : here.work[op]->order) {
    const PieceCost& piece = here.work[op]->pieces[index];
    phase.compute_ps += piece.duration_ps - piece.communication_ps;
    if (piece.communication_ps == 0) continue;
    phase.core_ps = piece.core_ps;
    phase.wait_ps = piece.communication_ps - piece.core_ps;
    at->second.push_back(phase);
    phase = {};
  }
  if (phase.compute_ps > 0) at->second.push_back(phase);
  return at->second;
}

void Engine::StartPhase(std::uint32_t at, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  meeting.in_collective = false;
  meeting.num_running = 0;
  bool is_over = true;
  for (const auto& [cls, op] : meeting.ops) {
    const std::vector<Phase>& phases = PhasesOf(cls, op);
    if (meeting.phase >= phases.size()) continue;
    is_over = false;
    const std::int64_t work = phases[meeting.phase].compute_ps;
    if (work == 0) continue;
    ++meeting.num_running;
    StartJob(cls, {Job::Kind::kMember, at, 0}, work, Pace::kSlowedByOthers, now);
  }
  if (is_over) {
    EndMeeting(at, now);
  } else if (meeting.num_running == 0) {
    StartPhaseCollective(at, now);
  }
}

void Engine::StartPhaseCollective(std::uint32_t at, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  meeting.in_collective = true;
  std::int64_t wait = 0;
  for (const auto& [cls, op] : meeting.ops) {
    const std::vector<Phase>& phases = PhasesOf(cls, op);
    if (meeting.phase < phases.size()) wait = std::max(wait, phases[meeting.phase].wait_ps);
  }
  if (wait > 0) {
    Push(now, wait, {.what = What::kGroupWaited, .a = at});
  } else {
    StartCoreTime(at, now);
  }
}

void Engine::StartCoreTime(std::uint32_t at, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  for (const auto& [cls, op] : meeting.ops) {
    const std::vector<Phase>& phases = PhasesOf(cls, op);
    if (meeting.phase >= phases.size() || phases[meeting.phase].core_ps == 0) continue;
    ++meeting.num_running;
    StartJob(cls, {Job::Kind::kMember, at, 0}, phases[meeting.phase].core_ps, Pace::kAsStated, now);
  }
  if (meeting.num_running > 0) return;
  ++meeting.phase;
  StartPhase(at, now);
}

void Engine::OnMemberOver(std::uint32_t at, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  ISTHMUS_CHECK(meeting.num_running > 0, "meeting {} has no member that runs", at);
  if (--meeting.num_running > 0) return;
  if (meeting.in_collective) {
    ++meeting.phase;
    StartPhase(at, now);
  } else {
    StartPhaseCollective(at, now);
  }
}

}  // namespace isthmus::sim
