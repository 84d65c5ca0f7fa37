#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "traces/internal/message_flows.h"
#include "traces/internal/spool.h"
#include "traces/trace.h"

/// A run as a picture: processes (ranks), tracks (lanes), slices (intervals), flows (messages) and
/// memory curves. Trace viewers' formats are drawn from it.
namespace isthmus::traces::internal {

/// Ids of processes: one per rank class, its representative's rank + 1, since viewers take process
/// 0 for the system; 0 is the run as a whole.
using ProcessId = std::int32_t;

struct TimelineProcess {
  ProcessId id = 0;
  std::string name;
};

struct TimelineTrack {
  std::uint32_t id = 0;  // 1 …
  ProcessId process = 0;
  bool is_lane = false;    // the lane itself; otherwise a further track of it
  std::int32_t order = 0;  // place among the tracks of the process
  std::string name;
};

struct Annotation {
  const char* name = "";
  std::variant<std::int64_t, double, std::string_view> value;
};

struct TimelineSlice {
  std::uint32_t track = 0;
  ProcessId process = 0;
  std::string_view name;
  const char* category = "";
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  std::vector<Annotation> annotations;
  std::vector<std::uint64_t> departures;  // flows that start here
  std::uint64_t arrival = 0;              // the flow that ends here; 0: none
  std::int64_t arrival_ps =
      0;  // start_ps, or later when the slice began before the message was sent

  bool arrives_late() const { return arrival != 0 && arrival_ps > start_ps; }
};

/// Receives the picture. Slices of a track nest: begins and ends come in the order of their times,
/// and at one time in an order that keeps the nesting. A flow's departure comes before its arrival
/// wherever both are at one time.
class TimelineRenderer {
 public:
  virtual ~TimelineRenderer() = default;
  virtual void OnRun(const Header& header) = 0;
  virtual void OnProcess(const TimelineProcess& process) = 0;
  virtual void OnTrack(const TimelineTrack& track) = 0;
  virtual void OnSliceBegin(const TimelineSlice& slice) = 0;
  /// `arrival`: the slice's, if it arrives late; else 0.
  virtual void OnSliceEnd(std::uint32_t track, std::int64_t end_ps, std::uint64_t arrival) = 0;
  virtual void OnMemory(ProcessId process, std::int64_t time_ps, std::int64_t bytes) = 0;
  virtual void OnFinish() = 0;
};

/// Keeps a run and draws it when it is complete, since waits are known only then and sends must be
/// drawn before receives.
///
/// An op is a slice on its lane with its pieces nested in it; a transfer is a slice on its lane's
/// "send" or "receive" track, in place of its op; imposed waits are slices on the compute lane.
/// What overlaps without nesting goes to further tracks of the lane.
/// Memory: the header, and the run packed (Spool).
class Timeline {
 public:
  void OnHeader(const Header& header);
  void OnEvents(std::span<const Event> events);
  void OnMemory(std::span<const MemoryCounter> counters);
  void Draw(const Trailer& trailer, TimelineRenderer& renderer) const;

 private:
  Header header_;
  Spool<Event> events_;
  Spool<MemoryCounter> counters_;
};

}  // namespace isthmus::traces::internal
