#include "traces/internal/timeline.h"

#include "base/check.h"
#include "traces/internal/timeline_drawer.h"
#include "traces/internal/trace_index.h"

namespace isthmus::traces::internal {

void Timeline::OnHeader(const Header& header) {
  header_ = header;
  const Defect defect = TraceIndex(header_).DefectOfHeader();
  ISTHMUS_CHECK(!defect.has_value(), "the trace {}", *defect);
  events_ = Spool<Event>(header_.classes.size());
  counters_ = Spool<MemoryCounter>(header_.classes.size());
}

void Timeline::OnEvents(std::span<const Event> events) {
  const TraceIndex index(header_);
  for (const Event& event : events) {
    const Defect defect = index.DefectOf(event);
    ISTHMUS_CHECK(!defect.has_value(), "the trace {}", *defect);
  }
  events_.Append(events);
}

void Timeline::OnMemory(std::span<const MemoryCounter> counters) {
  const TraceIndex index(header_);
  for (const MemoryCounter& counter : counters) {
    const Defect defect = index.DefectOf(counter);
    ISTHMUS_CHECK(!defect.has_value(), "the trace {}", *defect);
  }
  counters_.Append(counters);
}

void Timeline::Draw(const Trailer& trailer, TimelineRenderer& renderer) const {
  const TraceIndex index(header_);
  const Defect defect = index.DefectOf(trailer);
  ISTHMUS_CHECK(!defect.has_value(), "the trace {}", *defect);

  std::vector<TransferEvent> transfers;
  events_.ForEach([&](const Event& event) {
    if (event.inner == 0 || !HasTransfers(index.OpOf(event))) return;
    transfers.push_back({event.rank_class, event.op, event.inner - 1, event.start_ps});
  });
  TimelineDrawer drawer(header_, trailer, MessageFlows(header_, std::move(transfers)), renderer);
  drawer.DrawFrame();
  events_.ForEach([&](const Event& event) { drawer.DrawSend(event); });
  events_.ForEach([&](const Event& event) { drawer.DrawOther(event); });
  drawer.DrawRest();
  counters_.ForEach([&](const MemoryCounter& counter) { drawer.DrawMemory(counter); });
  renderer.OnFinish();
}

}  // namespace isthmus::traces::internal
