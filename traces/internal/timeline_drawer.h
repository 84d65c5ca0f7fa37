#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/internal/message_flows.h"
#include "traces/internal/timeline.h"
#include "traces/internal/trace_index.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// One drawing of a run; Timeline says in which order its calls come.
///
/// Lifetime: header, trailer and renderer must outlive it.
class TimelineDrawer {
 public:
  TimelineDrawer(const Header& header, const Trailer& trailer, MessageFlows flows,
                 TimelineRenderer& renderer);

  /// The run, its ranks and steps.
  void DrawFrame();
  /// The event, when it is a send; else nothing.
  void DrawSend(const Event& event);
  /// The event, when it is not a send, and what is due before it.
  void DrawOther(const Event& event);
  /// What is still open or was never due.
  void DrawRest();
  void DrawMemory(const MemoryCounter& counter);

 private:
  enum class Part : std::uint8_t { kOps, kSends, kReceives };

  // The tracks of one lane and part: the first, and more where slices overlap.
  struct Slot {
    ProcessId process = 0;
    std::int32_t order = 0;
    bool is_lane = false;
    std::string name;
    struct Open {
      std::int64_t end_ps = 0;
      std::uint64_t arrival = 0;  // when it is late
    };
    struct Track {
      std::uint32_t id = 0;
      std::int64_t last_ps = 0;  // of the last begin or end drawn
      std::vector<Open> open;    // innermost last
    };
    std::vector<Track> tracks;
  };

  void AddSlots(const RankClass& rank_class);
  Slot& SlotOf(const Event& event, Part part);
  void DrawSteps();
  void DrawOp(const Event& event);
  void DrawPiece(const Event& event);
  void DrawTransfer(const Event& event);
  void DrawWaitsBefore(const Event& event);
  void DrawWait(const ImposedWait& wait);
  void DrawKernels();
  std::vector<Annotation> AnnotationsOf(const Event& event) const;
  void Place(Slot& slot, TimelineSlice slice);
  void Close(Slot::Track& track, std::int64_t until_ps);
  Slot::Track& AddTrack(Slot& slot);

  const Header& header_;
  const Trailer& trailer_;
  TraceIndex index_;
  MessageFlows flows_;
  TimelineRenderer& renderer_;
  std::vector<Slot> slots_;              // by class, lane and part; the steps last
  std::vector<std::size_t> first_slot_;  // by class
  std::vector<Slot> kernel_slots_;       // by class, below its lanes
  std::uint32_t num_tracks_ = 0;
  std::vector<std::vector<ImposedWait>> waits_;  // by class, the next one last
  std::vector<std::size_t> compute_lane_;        // by role
  // Pieces that came before their op, by class and op.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Event>> early_pieces_;
  std::vector<std::int64_t> last_op_;  // by slot: the op drawn last, -1 for none
};

}  // namespace isthmus::traces::internal
