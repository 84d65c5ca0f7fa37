#include "traces/internal/perfetto_writer.h"

#include <algorithm>

namespace isthmus::traces::internal {
namespace {

constexpr std::uint32_t kSequence = 1;

// Track ids of one file: lanes by their timeline ids, then the processes, then their memory.
constexpr std::uint64_t kProcessTracks = std::uint64_t{1} << 32U;
constexpr std::uint64_t kMemoryTracks = std::uint64_t{2} << 32U;

std::uint64_t ProcessTrack(ProcessId process) {
  return kProcessTracks + static_cast<std::uint32_t>(process);
}
std::uint64_t MemoryTrack(ProcessId process) {
  return kMemoryTracks + static_cast<std::uint32_t>(process);
}

// Down, for begins and ends alike; times before the run's start are its start.
std::uint64_t Nanoseconds(std::int64_t time_ps) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time_ps, 0) / 1000);
}

void AppendVarint(std::uint64_t value, std::string& bytes) {
  while (value >= 0x80U) {
    bytes.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
    value >>= 7U;
  }
  bytes.push_back(static_cast<char>(value));
}

}  // namespace

void PerfettoRenderer::WritePacket() {
  using Packet = perfetto::TracePacket;
  packet_.set_trusted_packet_sequence_id(kSequence);
  unsigned flags = Packet::SEQ_NEEDS_INCREMENTAL_STATE;
  if (is_first_) flags |= Packet::SEQ_INCREMENTAL_STATE_CLEARED;
  is_first_ = false;
  packet_.set_sequence_flags(flags);
  // A file is one message Trace; its only field is the repeated packet = 1 (tag 0x0A).
  bytes_.assign(1, '\x0A');
  AppendVarint(packet_.ByteSizeLong(), bytes_);
  packet_.AppendToString(&bytes_);
  file_.Write(bytes_);
  packet_.Clear();
}

void PerfettoRenderer::OnRun(const Header& header) {
  for (const RankClass& rank_class : header.classes) {
    first_thread_ = std::max(first_thread_, std::int64_t{rank_class.representative} + 2);
  }
  perfetto::TrackDescriptor& track = *packet_.mutable_track_descriptor();
  track.set_uuid(ProcessTrack(0));
  track.set_name(header.scenario_name.empty() ? "run" : "run: " + header.scenario_name);
  track.set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
  WritePacket();
}

void PerfettoRenderer::OnProcess(const TimelineProcess& process) {
  perfetto::TrackDescriptor& track = *packet_.mutable_track_descriptor();
  track.set_uuid(ProcessTrack(process.id));
  track.set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
  track.mutable_process()->set_pid(process.id);
  track.mutable_process()->set_legacy_sort_index(process.id);
  track.mutable_process()->set_process_name(process.name);
  WritePacket();
  perfetto::TrackDescriptor& memory = *packet_.mutable_track_descriptor();
  memory.set_uuid(MemoryTrack(process.id));
  memory.set_parent_uuid(ProcessTrack(process.id));
  memory.set_name("memory");
  memory.mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
  WritePacket();
}

void PerfettoRenderer::OnTrack(const TimelineTrack& track) {
  perfetto::TrackDescriptor& descriptor = *packet_.mutable_track_descriptor();
  descriptor.set_uuid(track.id);
  descriptor.set_parent_uuid(ProcessTrack(track.process));
  descriptor.set_sibling_order_rank(track.order);
  if (track.is_lane && track.process != 0) {
    // Thread ids are unique in a file, and above the process ids: an equal one is a main thread.
    descriptor.mutable_thread()->set_pid(track.process);
    descriptor.mutable_thread()->set_tid(first_thread_ + track.id);
    descriptor.mutable_thread()->set_legacy_sort_index(track.order);
    descriptor.mutable_thread()->set_thread_name(track.name);
  } else {
    descriptor.set_name(track.name);
  }
  WritePacket();
}

std::uint64_t PerfettoRenderer::NumberOf(
    std::string_view text, Numbers& numbers,
    perfetto::InternedString* (perfetto::InternedData::*add)()) {
  const auto found = numbers.find(text);
  if (found != numbers.end()) return found->second;
  const std::uint64_t number = numbers.size() + 1;
  numbers.emplace(text, number);
  perfetto::InternedString& entry = *(packet_.mutable_interned_data()->*add)();
  entry.set_iid(number);
  entry.set_text(std::string(text));
  return number;
}

perfetto::TrackEvent& PerfettoRenderer::StartEvent(std::int64_t time_ps) {
  packet_.set_timestamp(Nanoseconds(time_ps));
  return *packet_.mutable_track_event();
}

void PerfettoRenderer::Annotate(const Annotation& annotation, perfetto::TrackEvent& event) {
  perfetto::DebugAnnotation& entry = *event.add_debug_annotations();
  entry.set_name_iid(NumberOf(annotation.name, annotation_names_,
                              &perfetto::InternedData::add_debug_annotation_names));
  if (const auto* number = std::get_if<std::int64_t>(&annotation.value)) {
    entry.set_int_value(*number);
  } else if (const auto* real = std::get_if<double>(&annotation.value)) {
    entry.set_double_value(*real);
  } else {
    entry.set_string_value_iid(
        NumberOf(std::get<std::string_view>(annotation.value), annotation_texts_,
                 &perfetto::InternedData::add_debug_annotation_string_values));
  }
}

void PerfettoRenderer::OnSliceBegin(const TimelineSlice& slice) {
  perfetto::TrackEvent& event = StartEvent(slice.start_ps);
  event.set_type(perfetto::TrackEvent::TYPE_SLICE_BEGIN);
  event.set_track_uuid(slice.track);
  event.set_name_iid(NumberOf(slice.name, names_, &perfetto::InternedData::add_event_names));
  event.add_category_iids(
      NumberOf(slice.category, categories_, &perfetto::InternedData::add_event_categories));
  for (const Annotation& annotation : slice.annotations) Annotate(annotation, event);
  for (const std::uint64_t flow : slice.departures) event.add_flow_ids(flow);
  if (slice.arrival != 0 && !slice.arrives_late()) event.add_terminating_flow_ids(slice.arrival);
  WritePacket();
}

void PerfettoRenderer::OnSliceEnd(std::uint32_t track, std::int64_t end_ps, std::uint64_t arrival) {
  perfetto::TrackEvent& event = StartEvent(end_ps);
  event.set_type(perfetto::TrackEvent::TYPE_SLICE_END);
  event.set_track_uuid(track);
  if (arrival != 0) event.add_terminating_flow_ids(arrival);
  WritePacket();
}

void PerfettoRenderer::OnMemory(ProcessId process, std::int64_t time_ps, std::int64_t bytes) {
  perfetto::TrackEvent& event = StartEvent(time_ps);
  event.set_type(perfetto::TrackEvent::TYPE_COUNTER);
  event.set_track_uuid(MemoryTrack(process));
  event.set_counter_value(bytes);
  WritePacket();
}

}  // namespace isthmus::traces::internal
