#include "traces/internal/timeline_drawer.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace isthmus::traces::internal {
namespace {

constexpr std::size_t kNumParts = 3;
constexpr std::int64_t kEndOfTime = std::numeric_limits<std::int64_t>::max();

ProcessId ProcessOf(const RankClass& rank_class) { return rank_class.representative + 1; }

bool IsTransfer(const OpRecord& op, const Event& event) {
  return event.inner > 0 && HasTransfers(op);
}
const TransferRecord& TransferOf(const OpRecord& op, const Event& event) {
  return op.transfers[event.inner - 1];
}

}  // namespace

TimelineDrawer::TimelineDrawer(const Header& header, const Trailer& trailer, MessageFlows flows,
                               TimelineRenderer& renderer)
    : header_(header),
      trailer_(trailer),
      index_(header),
      flows_(std::move(flows)),
      renderer_(renderer),
      waits_(header.classes.size()) {
  for (const RoleRecord& role : header.roles) {
    const auto compute =
        std::find_if(role.lanes.begin(), role.lanes.end(),
                     [](const LaneRecord& lane) { return lane.kind == "compute"; });
    const bool has_one = compute != role.lanes.end();
    compute_lane_.push_back(has_one ? static_cast<std::size_t>(compute - role.lanes.begin())
                                    : std::size_t{0});
  }
  for (const RankClass& rank_class : header.classes) AddSlots(rank_class);
  slots_.push_back({.process = 0, .order = 0, .is_lane = true, .name = "steps", .tracks = {}});
  last_op_.assign(slots_.size(), -1);
  for (const ImposedWait& wait : trailer.waits) waits_[wait.rank_class].push_back(wait);
  for (std::vector<ImposedWait>& waits : waits_) {
    std::stable_sort(waits.begin(), waits.end(), [](const ImposedWait& a, const ImposedWait& b) {
      return a.start_ps < b.start_ps;
    });
    std::reverse(waits.begin(), waits.end());
  }
}

void TimelineDrawer::AddSlots(const RankClass& rank_class) {
  first_slot_.push_back(slots_.size());
  std::int32_t order = 0;
  for (const LaneRecord& lane : header_.roles[rank_class.role].lanes) {
    for (const char* part : {"", " send", " receive"}) {
      slots_.push_back({.process = ProcessOf(rank_class),
                        .order = order++,
                        .is_lane = *part == '\0',
                        .name = lane.name + part,
                        .tracks = {}});
    }
  }
  kernel_slots_.push_back({.process = ProcessOf(rank_class),
                           .order = order,
                           .is_lane = false,
                           .name = "kernels",
                           .tracks = {}});
}

TimelineDrawer::Slot& TimelineDrawer::SlotOf(const Event& event, Part part) {
  return slots_[first_slot_[event.rank_class] + index_.OpOf(event).lane * kNumParts +
                static_cast<std::size_t>(part)];
}

void TimelineDrawer::DrawFrame() {
  renderer_.OnRun(header_);
  for (const RankClass& rank_class : header_.classes) {
    const std::string alike =
        rank_class.count > 1 ? fmt::format(" (one of {})", rank_class.count) : std::string();
    renderer_.OnProcess(
        {ProcessOf(rank_class), fmt::format("rank {}{}: {}", rank_class.representative, alike,
                                            header_.roles[rank_class.role].name)});
  }
  DrawSteps();
}

void TimelineDrawer::DrawSteps() {
  std::int64_t start = 0;
  for (std::size_t step = 0; step < trailer_.step_end_ps.size(); ++step) {
    const std::int64_t end = std::max(start, trailer_.step_end_ps[step]);
    const std::string name = fmt::format("step {}", step);
    TimelineSlice slice;
    slice.name = name;
    slice.category = "step";
    slice.start_ps = start;
    slice.end_ps = end;
    Place(slots_.back(), std::move(slice));
    start = end;
  }
}

void TimelineDrawer::DrawSend(const Event& event) {
  const OpRecord& op = index_.OpOf(event);
  if (IsTransfer(op, event) && TransferOf(op, event).sends) DrawTransfer(event);
}

void TimelineDrawer::DrawOther(const Event& event) {
  const OpRecord& op = index_.OpOf(event);
  if (IsTransfer(op, event)) {
    if (!TransferOf(op, event).sends) DrawTransfer(event);
    return;
  }
  if (HasTransfers(op)) return;  // its transfers stand for it
  if (event.inner == 0) {
    DrawWaitsBefore(event);
    DrawOp(event);
    const auto pieces = early_pieces_.find({event.rank_class, event.op});
    if (pieces == early_pieces_.end()) return;
    std::stable_sort(pieces->second.begin(), pieces->second.end(),
                     [](const Event& a, const Event& b) {
                       // What lasts longer goes around what it overlaps.
                       return std::pair(a.start_ps, -a.end_ps) < std::pair(b.start_ps, -b.end_ps);
                     });
    for (const Event& piece : pieces->second) DrawPiece(piece);
    early_pieces_.erase(pieces);
    return;
  }
  const Slot& slot = SlotOf(event, Part::kOps);
  if (last_op_[static_cast<std::size_t>(&slot - slots_.data())] == event.op) {
    DrawPiece(event);
  } else {
    early_pieces_[{event.rank_class, event.op}].push_back(event);
  }
}

void TimelineDrawer::DrawRest() {
  for (const auto& [key, pieces] : early_pieces_) {
    for (const Event& piece : pieces) DrawPiece(piece);
  }
  for (std::vector<ImposedWait>& waits : waits_) {
    for (; !waits.empty(); waits.pop_back()) DrawWait(waits.back());
  }
  DrawKernels();
  for (std::vector<Slot>* slots : {&slots_, &kernel_slots_}) {
    for (Slot& slot : *slots) {
      for (Slot::Track& track : slot.tracks) Close(track, kEndOfTime);
    }
  }
}

void TimelineDrawer::DrawKernels() {
  for (const KernelRun& kernel : trailer_.kernels) {
    TimelineSlice slice;
    slice.name = trailer_.kernel_names[kernel.name];
    slice.category = "kernel";
    slice.start_ps = kernel.start_ps;
    slice.end_ps = kernel.end_ps;
    slice.annotations.push_back({"op", std::int64_t{kernel.op}});
    Place(kernel_slots_[kernel.rank_class], std::move(slice));
  }
}

void TimelineDrawer::DrawMemory(const MemoryCounter& counter) {
  renderer_.OnMemory(ProcessOf(header_.classes[counter.rank_class]), counter.time_ps,
                     counter.bytes);
}

void TimelineDrawer::DrawOp(const Event& event) {
  const OpRecord& op = index_.OpOf(event);
  Slot& slot = SlotOf(event, Part::kOps);
  last_op_[static_cast<std::size_t>(&slot - slots_.data())] = event.op;
  TimelineSlice slice;
  slice.name = op.name;
  slice.category = ToText(op.category);
  slice.start_ps = event.start_ps;
  slice.end_ps = event.end_ps;
  slice.annotations = AnnotationsOf(event);
  Place(slot, std::move(slice));
}

void TimelineDrawer::DrawPiece(const Event& event) {
  const PieceRecord piece = index_.PieceOf(event);
  TimelineSlice slice;
  slice.name = piece.name;
  slice.category = ToText(piece.category);
  slice.start_ps = event.start_ps;
  slice.end_ps = event.end_ps;
  Place(SlotOf(event, Part::kOps), std::move(slice));
}

void TimelineDrawer::DrawTransfer(const Event& event) {
  const OpRecord& op = index_.OpOf(event);
  const TransferRecord& transfer = TransferOf(op, event);
  const std::uint32_t peer = index_.ClassOf(event).peers[transfer.peer];
  TimelineSlice slice;
  slice.name = op.name;
  slice.category = ToText(op.category);
  slice.start_ps = event.start_ps;
  slice.end_ps = event.end_ps;
  slice.annotations = AnnotationsOf(event);
  slice.annotations.push_back({"transfer_bytes", transfer.bytes});
  slice.annotations.push_back({"peer_rank", std::int64_t{header_.classes[peer].representative}});
  if (transfer.sends) {
    slice.departures = flows_.DeparturesOf(event);
  } else if (const auto arrival = flows_.ArrivalOf(event)) {
    slice.arrival = arrival->flow;
    slice.arrival_ps = std::clamp(arrival->sent_ps, event.start_ps, event.end_ps);
  }
  Place(SlotOf(event, transfer.sends ? Part::kSends : Part::kReceives), std::move(slice));
}

void TimelineDrawer::DrawWaitsBefore(const Event& event) {
  if (index_.OpOf(event).lane != compute_lane_[index_.ClassOf(event).role]) return;
  std::vector<ImposedWait>& waits = waits_[event.rank_class];
  while (!waits.empty() && waits.back().start_ps <= event.start_ps && waits.back().op < event.op) {
    DrawWait(waits.back());
    waits.pop_back();
  }
}

void TimelineDrawer::DrawWait(const ImposedWait& wait) {
  const std::size_t lane = compute_lane_[header_.classes[wait.rank_class].role];
  TimelineSlice slice;
  slice.name = wait.straggler ? "straggler wait" : "host overhead";
  slice.category = wait.straggler ? "straggler" : "host";
  slice.start_ps = wait.start_ps;
  slice.end_ps = wait.end_ps;
  Place(slots_[first_slot_[wait.rank_class] + lane * kNumParts], std::move(slice));
}

std::vector<Annotation> TimelineDrawer::AnnotationsOf(const Event& event) const {
  const OpRecord& op = index_.OpOf(event);
  std::vector<Annotation> result;
  result.reserve(12);  // all that there may be, a transfer's two included
  result.push_back({"module", std::string_view(header_.modules[op.module].name)});
  if (!op.action.empty()) result.push_back({"action", std::string_view(op.action)});
  if (op.microbatch >= 0) result.push_back({"microbatch", std::int64_t{op.microbatch}});
  if (op.chunk > 0) result.push_back({"chunk", std::int64_t{op.chunk}});
  if (header_.num_steps > 1) result.push_back({"step", std::int64_t{op.step}});
  if (op.group > 0) {
    const std::string& group = index_.RoleOf(event).groups[op.group - 1];
    result.push_back({"communicator", std::string_view(group)});
  }
  if (op.bytes > 0) result.push_back({"bytes", op.bytes});
  if (op.model_flops > 0) result.push_back({"model_flops", op.model_flops});
  // Ready but held up: by partners, or by the lane.
  if (event.start_ps > event.issue_ps) {
    result.push_back({"wait_ns", (event.start_ps - event.issue_ps) / 1000});
  }
  result.push_back({"op", std::int64_t{event.op}});
  return result;
}

void TimelineDrawer::Place(Slot& slot, TimelineSlice slice) {
  Slot::Track* place = nullptr;
  for (Slot::Track& track : slot.tracks) {
    if (slice.start_ps < track.last_ps) continue;
    Close(track, slice.start_ps);
    if (!track.open.empty() && track.open.back().end_ps < slice.end_ps) continue;
    place = &track;
    break;
  }
  if (place == nullptr) place = &AddTrack(slot);
  slice.track = place->id;
  slice.process = slot.process;
  place->last_ps = slice.start_ps;
  place->open.push_back({slice.end_ps, slice.arrives_late() ? slice.arrival : 0});
  renderer_.OnSliceBegin(slice);
}

void TimelineDrawer::Close(Slot::Track& track, std::int64_t until_ps) {
  while (!track.open.empty() && track.open.back().end_ps <= until_ps) {
    const Slot::Open& open = track.open.back();
    track.last_ps = open.end_ps;
    renderer_.OnSliceEnd(track.id, open.end_ps, open.arrival);
    track.open.pop_back();
  }
}

TimelineDrawer::Slot::Track& TimelineDrawer::AddTrack(Slot& slot) {
  const std::size_t place = slot.tracks.size();
  Slot::Track& track = slot.tracks.emplace_back();
  track.id = ++num_tracks_;
  track.last_ps = std::numeric_limits<std::int64_t>::min();
  renderer_.OnTrack(
      {.id = track.id,
       .process = slot.process,
       .is_lane = slot.is_lane && place == 0,
       .order = slot.order,
       .name = place == 0 ? slot.name : fmt::format("{} ({})", slot.name, place + 1)});
  return track;
}

}  // namespace isthmus::traces::internal
