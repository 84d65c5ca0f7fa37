#include "sim/engine/engine.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "plan/program/print.h"

namespace isthmus::sim {
namespace {

constexpr std::size_t kEventPortion = 1U << 14U;

}  // namespace

Engine::Engine(const Lowered& lowered, EngineOptions options, EventPort port)
    : lowered_(lowered),
      options_(std::move(options)),
      port_(std::move(port)),
      classes_(lowered.classes.size()),
      meetings_(lowered.communicators.size() * 2) {
  for (const int cores : options_.sharing.cores_of_device)
    devices_.emplace_back(cores, options_.sharing.speeds);
  result_.step_end_ps.assign(static_cast<std::size_t>(lowered.program->num_steps), 0);
  result_.times.resize(classes_.size());
  for (std::uint32_t cls = 0; cls < classes_.size(); ++cls) {
    const Variant& here = variant(cls);
    const auto pending = here.graph->num_prerequisites();
    const std::size_t num_ops = here.ops->ops.size();
    classes_[cls].pending.assign(pending.begin(), pending.end());
    classes_[cls].posted.assign(num_ops, false);
    classes_[cls].started.assign(here.ops->transfers.size(), false);
    result_.times[cls].start_ps.assign(num_ops, 0);
    result_.times[cls].end_ps.assign(num_ops, 0);
    result_.times[cls].transfer_end_ps.assign(here.ops->transfers.size(), -1);
    classes_[cls].host_ps = options_.start_ps;
    classes_[cls].sync_end_ps = options_.start_ps + here.sync_at_start_ps;
  }
  events_.reserve(kEventPortion);
  ISTHMUS_CHECK(options_.jitter == nullptr || (!lowered.folded && devices_.empty()),
                "jitter where ranks are folded or share a device");
}

EngineResult Engine::Run() {
  ISTHMUS_CHECK(options_.network == nullptr, "an engine on a network is run by its mix");
  Start();
  while (!heap_.empty()) HandleNext();
  return Finish();
}

void Engine::Start() {
  Prime();
  Drain(options_.start_ps);
}

void Engine::HandleNext() {
  const auto entry = heap_.Pop();
  Happen(entry.payload, entry.time_ps);
  Drain(entry.time_ps);
}

EngineResult Engine::Finish() {
  Flush();
  ExplainDeadlock();
  return std::move(result_);
}

void Engine::Happen(const Payload& what, std::int64_t now) {
  switch (what.what) {
    case What::kOpEnd:
      Complete(what.a, what.b, result_.times[what.a].start_ps[what.b],
               result_.times[what.a].start_ps[what.b], now);
      break;
    case What::kGroupEnd:
      EndMeeting(what.a, now);
      break;
    case What::kTransferEnd:
      EndTransfer(what.a, what.b, now);
      break;
    case What::kRelease:
      ReleaseHeldBack(what.a, what.b, now);
      break;
    case What::kIssued:
      OnIssued(what.a, what.b, now);
      break;
    case What::kMeetingIssued:
      StartMeeting(what.a, now);
      break;
    case What::kPiece:
      Piece(what.a, what.c, what.b, now);
      break;
    case What::kGroupPiece:
      GroupPiece(what.a, what.b, now);
      break;
    case What::kDevice:
      OnDevice(what.a, what.b, now);
      break;
    case What::kGroupWaited:
      StartCoreTime(what.a, now);
      break;
    case What::kTransferWaited:
      StartJob(what.a, {Job::Kind::kMessage, what.a, what.b}, CoreTimeOf(what.a, what.b),
               Pace::kAsStated, now);
      break;
  }
}

void Engine::Prime() {
  for (std::uint32_t cls = 0; cls < classes_.size(); ++cls) {
    const std::vector<std::uint16_t>& pending = classes_[cls].pending;
    for (std::uint32_t op = 0; op < pending.size(); ++op) {
      if (pending[op] == 0) ready_.emplace_back(cls, op);
    }
  }
}

void Engine::Drain(std::int64_t now) {
  for (std::size_t next = 0; next < ready_.size(); ++next) {
    const auto [cls, op] = ready_[next];
    OnReady(cls, op, now);
  }
  ready_.clear();
}

void Engine::OnReady(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  const std::int64_t issue = IssueOf(cls, op);
  if (issue > now) {
    const bool is_compute = variant(cls).ops->ops[op].kind == plan::OpKind::kCompute;
    if (is_compute) result_.waits.push_back({cls, op, now, issue, false});
    heap_.Push(issue, {.what = What::kIssued, .a = cls, .b = op});
  } else {
    OnIssued(cls, op, now);
  }
}

std::int64_t Engine::IssueOf(std::uint32_t cls, std::uint32_t op) const {
  const Variant& here = variant(cls);
  const std::int64_t host = classes_[cls].host_ps;
  const std::int64_t issued = IssuedOf(cls, op);
  if (here.ops->ops[op].kind != plan::OpKind::kCompute) return issued;
  const std::int64_t begun = host + (op > 0 ? here.issued_ps[op - 1] : 0);
  // Matched ranks run at the pace of the slowest: when they may start is known once all are there.
  if (Meets(cls, here.ops->ops[op])) return begun;
  return std::max(begun, issued - DurationOf(cls, op));
}

bool Engine::HoldForIssue(std::uint32_t at, std::int64_t now) {
  const Meeting& meeting = meetings_[at];
  std::int64_t issued = now;
  for (const auto& [cls, op] : meeting.ops) issued = std::max(issued, IssuedOf(cls, op));
  if (issued == now) return false;
  const std::int64_t start = issued - PacedDuration(meeting);
  if (start <= now) return false;
  for (const auto& [cls, op] : meeting.ops) result_.waits.push_back({cls, op, now, start, false});
  heap_.Push(start, {.what = What::kMeetingIssued, .a = at});
  return true;
}

void Engine::HostWaited(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  std::int64_t& host = classes_[cls].host_ps;
  host = std::max(host, now - variant(cls).issued_ps[op]);
}

std::int64_t Engine::SyncSlowdown(std::uint32_t cls, std::uint32_t op, std::int64_t now) const {
  const std::int64_t left = classes_[cls].sync_end_ps - now;
  if (left <= 0 || options_.sync_contention <= 0) return 0;
  const std::int64_t shared = std::min(left, DurationOf(cls, op));
  return std::llround(options_.sync_contention * static_cast<double>(shared));
}

void Engine::OnIssued(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  const plan::Op& what = variant(cls).ops->ops[op];
  if (what.kind == plan::OpKind::kP2P) {
    Post(cls, op, now);
  } else if (Meets(cls, what)) {
    Arrive(cls, op, now);
  } else {
    StartAlone(cls, op, now);
  }
}

bool Engine::Meets(std::uint32_t cls, const plan::Op& op) const {
  if (op.kind != plan::OpKind::kCompute && op.kind != plan::OpKind::kCollective) return false;
  if (op.group == plan::kNone32) return false;
  // A collective of nothing is skipped by all.
  if (op.kind == plan::OpKind::kCollective && variant(cls).bytes_of(op) == 0) return false;
  return variant(cls).meets[op.group];
}

std::uint32_t Engine::MeetingOf(std::uint32_t cls, const plan::Op& op) const {
  const std::uint32_t communicator = lowered_.classes[cls].communicators[op.group];
  return communicator * 2 + (op.kind == plan::OpKind::kCompute ? 1U : 0U);
}

void Engine::Arrive(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  const std::uint32_t at = MeetingOf(cls, variant(cls).ops->ops[op]);
  Meeting& meeting = meetings_[at];
  meeting.ops.emplace_back(cls, op);
  meeting.issue_ps.push_back(now);
  meeting.duration_ps = std::max(meeting.duration_ps, DurationOf(cls, op));
  if (++meeting.num_arrived == lowered_.communicators[at / 2].classes.size()) StartMeeting(at, now);
}

void Engine::StartMeeting(std::uint32_t at, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  const auto [first_class, first_op] = meeting.ops.front();
  const bool is_compute = variant(first_class).ops->ops[first_op].kind == plan::OpKind::kCompute;
  if (is_compute && HoldForIssue(at, now)) return;
  meeting.start_ps = now;
  for (const auto& [cls, op] : meeting.ops) result_.times[cls].start_ps[op] = now;
  if (shares(first_class)) {
    meeting.phase = 0;
    StartPhase(at, now);
    return;
  }
  if (is_compute) {
    for (const auto& [cls, op] : meeting.ops)
      meeting.extra_ps = std::max(meeting.extra_ps, SyncSlowdown(cls, op, now));
    for (const auto& [cls, op] : meeting.ops) RecordSlowdown(cls, op, meeting.extra_ps);
  }
  if (is_compute && options_.expanded) {
    GroupPiece(at, 0, now);
  } else {
    if (!is_compute && FlowsCollective(at, now)) return;
    const Payload end{.what = What::kGroupEnd, .a = at};
    const std::int64_t duration = is_compute ? PacedDuration(meeting) : meeting.duration_ps;
    Push(After(now, duration, end), meeting.extra_ps, end);
  }
}

std::int64_t Engine::PacedDuration(const Meeting& meeting) const {
  const auto work_of = [this](const auto& member) {
    return variant(member.first).work[member.second];
  };
  const WorkCost* first = work_of(meeting.ops.front());
  const bool alike = std::all_of(meeting.ops.begin(), meeting.ops.end(),
                                 [&](const auto& member) { return work_of(member) == first; });
  if (alike) return meeting.duration_ps;
  std::vector<BlockPace> paces = PacesOf(meeting);
  std::size_t num_pieces = 0;
  for (const BlockPace& pace : paces) num_pieces = std::max(num_pieces, pace.work->order.size());
  std::int64_t sum = 0;
  for (std::uint32_t position = 0; position < num_pieces; ++position) {
    sum = base::Later(sum, NextPiece(paces, position), [&] {
      return NameOfOp(meeting.ops.front().first, meeting.ops.front().second);
    });
  }
  return sum;
}

void Engine::EndMeeting(std::uint32_t at, std::int64_t now) {
  Meeting& meeting = meetings_[at];
  // Members may meet again while this one is taken apart: take its lists first.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ops;
  std::vector<std::int64_t> issue_ps;
  ops.swap(meeting.ops);
  issue_ps.swap(meeting.issue_ps);
  const std::int64_t start = meeting.start_ps;
  meeting.num_arrived = 0;
  meeting.duration_ps = 0;
  meeting.extra_ps = 0;
  for (std::size_t member = 0; member < ops.size(); ++member) {
    Complete(ops[member].first, ops[member].second, issue_ps[member], start, now);
  }
  if (!meeting.ops.empty()) return;
  // Give the memory back to the next meeting.
  ops.clear();
  issue_ps.clear();
  meeting.ops.swap(ops);
  meeting.issue_ps.swap(issue_ps);
}

void Engine::StartAlone(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  result_.times[cls].start_ps[op] = now;
  const Variant& here = variant(cls);
  const bool is_compute = here.ops->ops[op].kind == plan::OpKind::kCompute ||
                          here.ops->ops[op].kind == plan::OpKind::kOptimizer;
  if (is_compute && shares(cls)) {
    StartJob(cls, {Job::Kind::kAlone, cls, op}, here.duration_ps[op], Pace::kSlowedByOthers, now);
    return;
  }
  if (here.ops->ops[op].kind == plan::OpKind::kCopy && FlowsCopy(cls, op, now)) return;
  const bool is_model = here.ops->ops[op].kind == plan::OpKind::kCompute;
  const std::int64_t extra = is_model ? SyncSlowdown(cls, op, now) : 0;
  RecordSlowdown(cls, op, extra);
  if (options_.expanded && is_model && !here.work[op]->order.empty()) {
    classes_[cls].extra_ps = extra;
    Piece(cls, op, 0, now);
  } else {
    const Payload end{.what = What::kOpEnd, .a = cls, .b = op};
    Push(After(now, DurationOf(cls, op), end), extra, end);
  }
}

void Engine::Complete(std::uint32_t cls, std::uint32_t op, std::int64_t issue, std::int64_t start,
                      std::int64_t now) {
  const plan::Op& what = variant(cls).ops->ops[op];
  ClassState& state = classes_[cls];
  result_.times[cls].end_ps[op] = now;
  Record({cls, op, 0, issue, start, now});
  state.posted[op] = true;
  ++state.num_done;
  ++result_.num_ops;
  if (what.kind == plan::OpKind::kCompute || what.kind == plan::OpKind::kOptimizer)
    state.busy_ps += now - start;
  const std::int64_t sync = variant(cls).sync_after_ps[op];
  const Payload release{.what = What::kRelease, .a = cls, .b = op};
  if (sync > 0) state.sync_end_ps = After(std::max(state.sync_end_ps, now), sync, release);
  std::int64_t wait = 0;
  if ((what.flags & plan::kEndsBackward) != 0 && options_.straggler_share > 0) {
    const double share = options_.straggler_share * static_cast<double>(state.busy_ps);
    wait = std::llround(share);
    if (wait > 0) result_.waits.push_back({cls, op, now, After(now, wait, release), true});
  }
  if ((what.flags & plan::kEndsStep) != 0) {
    if (options_.step_overhead_ps > 0) {
      result_.waits.push_back(
          {cls, op, now + wait, After(now + wait, options_.step_overhead_ps, release), false});
    }
    wait += options_.step_overhead_ps;
    state.busy_ps = 0;
    std::int64_t& step_end = result_.step_end_ps[static_cast<std::size_t>(what.step)];
    step_end = std::max(step_end, now + wait);
  }
  if ((what.flags & (plan::kBlocksHost | plan::kEndsStep)) != 0) HostWaited(cls, op, now + wait);
  if (wait == 0) {
    Release(cls, op, now);
    return;
  }
  // Other stages don't wait for this rank's stragglers too: each would add its own, one after the
  // other along the pipeline.
  for (const std::uint32_t next : variant(cls).graph->AfterOp(op)) {
    if (is_passed_on(cls, next)) ReleaseList(cls, {&next, 1});
  }
  Push(now, wait, release);
}

void Engine::ReleaseHeldBack(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  result_.end_ps = std::max(result_.end_ps, now);
  for (const std::uint32_t next : variant(cls).graph->AfterOp(op)) {
    if (!is_passed_on(cls, next)) ReleaseList(cls, {&next, 1});
  }
}

void Engine::Release(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  result_.end_ps = std::max(result_.end_ps, now);
  ReleaseList(cls, variant(cls).graph->AfterOp(op));
}

void Engine::ReleaseList(std::uint32_t cls, std::span<const std::uint32_t> ops) {
  std::vector<std::uint16_t>& pending = classes_[cls].pending;
  for (const std::uint32_t op : ops) {
    ISTHMUS_DCHECK(pending[op] > 0, "op {} released too often", op);
    if (--pending[op] == 0) ready_.emplace_back(cls, op);
  }
}

void Engine::Record(const traces::Event& event) {
  events_.push_back(event);
  if (events_.size() == kEventPortion) Flush();
}

void Engine::Flush() {
  if (!events_.empty() && port_) port_(events_);
  events_.clear();
}

std::string Engine::NameOfOp(std::uint32_t cls, std::uint32_t op) const {
  const plan::Role& role = *variant(cls).ops;
  return fmt::format("op {} of rank {} ({})", op, lowered_.classes[cls].representative.value(),
                     plan::Describe(*lowered_.program, role, role.ops[op]));
}

std::string Engine::NameOf(const Payload& what) const {
  switch (what.what) {
    case What::kOpEnd:
    case What::kRelease:
    case What::kIssued:
      return NameOfOp(what.a, what.b);
    case What::kPiece:
      return NameOfOp(what.a, what.c);
    case What::kTransferEnd:
    case What::kTransferWaited:
      return NameOfOp(what.a, variant(what.a).graph->OpOfTransfer(what.b));
    case What::kGroupEnd:
    case What::kMeetingIssued:
    case What::kGroupPiece:
    case What::kGroupWaited:
      return NameOfOp(meetings_[what.a].ops.front().first, meetings_[what.a].ops.front().second);
    case What::kDevice:
      break;
  }
  return fmt::format("shared device {}", what.a);
}

void Engine::ExplainDeadlock() {
  for (std::uint32_t cls = 0; cls < classes_.size(); ++cls) {
    const ClassState& state = classes_[cls];
    const plan::Role& role = *variant(cls).ops;
    if (state.num_done == role.ops.size()) continue;
    result_.deadlock = true;
    result_.blocked_class = cls;
    for (std::uint32_t op = 0; op < role.ops.size(); ++op) {
      // An exchange that was posted may still wait for the other side.
      const bool over =
          state.posted[op] && (role.ops[op].kind != plan::OpKind::kP2P || state.pending[op] == 0);
      if (!over) {
        result_.blocked_op = op;
        return;
      }
    }
    return;
  }
}

}  // namespace isthmus::sim
