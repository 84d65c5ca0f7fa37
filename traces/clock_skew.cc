#include "traces/clock_skew.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "traces/internal/clock_fit.h"
#include "traces/meetings.h"

namespace isthmus::traces {

std::int64_t ClockSkew::Correct(std::uint32_t rank_class, std::int64_t time_ps) const {
  const RankClock& clock = clocks[rank_class];
  const auto since = static_cast<double>(time_ps - clock.middle_ps);
  return time_ps - std::llround(clock.offset_ps + clock.drift * since);
}

ClockSkew EstimateClockSkew(const Trace& trace) {
  if (trace.header.classes.empty()) return {};
  return internal::FitClocks(trace);
}

void RemoveClockSkew(const ClockSkew& skew, Trace& trace) {
  if (!skew.has_offsets) return;
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (Event& event : trace.events) {
    event.issue_ps = skew.Correct(event.rank_class, event.issue_ps);
    event.start_ps = skew.Correct(event.rank_class, event.start_ps);
    event.end_ps = skew.Correct(event.rank_class, event.end_ps);
    earliest = std::min(earliest, event.issue_ps);
  }
  if (trace.events.empty()) earliest = 0;
  for (Event& event : trace.events) {
    event.issue_ps -= earliest;
    event.start_ps -= earliest;
    event.end_ps -= earliest;
  }
  const auto correct = [&](std::uint32_t rank_class, std::int64_t& time) {
    time = skew.Correct(rank_class, time) - earliest;
  };
  for (MemoryCounter& counter : trace.counters) correct(counter.rank_class, counter.time_ps);
  for (MemoryPeak& peak : trace.trailer.memory) correct(peak.rank_class, peak.time_ps);
  for (ImposedWait& wait : trace.trailer.waits) {
    correct(wait.rank_class, wait.start_ps);
    correct(wait.rank_class, wait.end_ps);
  }
  for (KernelRun& kernel : trace.trailer.kernels) {
    correct(kernel.rank_class, kernel.start_ps);
    correct(kernel.rank_class, kernel.end_ps);
  }
  std::vector<std::int64_t>& step_ends = trace.trailer.step_end_ps;
  std::fill(step_ends.begin(), step_ends.end(), 0);
  trace.trailer.end_ps = 0;
  for (const Event& event : trace.events) {
    const RoleRecord& role = trace.header.roles[trace.header.classes[event.rank_class].role];
    const auto step = static_cast<std::size_t>(role.ops[event.op].step);
    if (step < step_ends.size()) step_ends[step] = std::max(step_ends[step], event.end_ps);
    trace.trailer.end_ps = std::max(trace.trailer.end_ps, event.end_ps);
  }
}

namespace {

void EndSends(const std::vector<Meeting>& meetings, bool with_receives, Trace& trace) {
  for (const Meeting& meeting : meetings) {
    if (!meeting.is_message) continue;
    Event& send = trace.events[meeting.events[0]];
    const std::int64_t received = trace.events[meeting.events[1]].end_ps;
    send.end_ps = with_receives ? std::max(send.start_ps, received) : send.start_ps;
  }
}

}  // namespace

ClockSkew PutSendersOnOneClock(Trace& trace) {
  const std::vector<Meeting> meetings = FindMeetings(trace);
  EndSends(meetings, false, trace);
  ClockSkew skew = EstimateClockSkew(trace);
  RemoveClockSkew(skew, trace);
  EndSends(meetings, true, trace);
  MeetPartners(trace);
  return skew;
}

ClockSkew PutOnOneClock(Trace& trace) {
  ClockSkew skew = EstimateClockSkew(trace);
  RemoveClockSkew(skew, trace);
  MeetPartners(trace);
  return skew;
}

}  // namespace isthmus::traces
