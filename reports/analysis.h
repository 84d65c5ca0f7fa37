#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reports/figures.h"
#include "traces/trace.h"

namespace isthmus::reports {

/// Turns a stream of events into Figures: one function for predicted and measured traces.
///
/// Time uses of a rank. While the compute lane is busy an instant is compute, except the inner
/// communication of a fused op (OpRecord::inner_shares, scaled to the op's length but for what a
/// synchronisation beside it made it longer). A gap
/// before an op is walked backwards along what the op really waited for, the predecessor (value or
/// lane) that was ready last:
///   collective     [start, end] exposed communication of its category, [issue, start] straggler,
///   or
///                  bubble where members are at different stages (boundaries, norms, token counts)
///   transfer       [start, end] exposed communication, and so is queueing after both sides were
///                  there; before that, [issue, the other side's issue] is bubble
///   copy           [start, end] copy
///   matched op     [issue, start] straggler
///   imposed wait   straggler or host, as it says
/// What is left is host, and the time after a rank's last op is bubble. All in picoseconds, so the
/// uses of a rank sum to the window exactly.
///
/// Critical path. From what ended last back through whatever bound it, across ranks: predecessors
/// as above, the member of a collective that came last, the side of a transfer that came last. Its
/// length is the window's.
///
/// Matching. Collectives: the k-th with the communicator on every member; matched computes
/// likewise, counted apart. Transfers: the k-th that took place from one class to another; where
/// folding makes the numbers n and m of both sides differ (one leader, five equal receivers), k of
/// n meets floor(k·m/n).
///
/// Robust against what measured traces have: events that are missing, ops that overlap by jitter,
/// starts before their issue. Throws base::Error when an event names a class or op that the header
/// does not have.
///
/// Not thread-safe. Cost: 24 bytes an event, O(events · dependencies per op).
class Analysis final : public traces::TraceSink {
 public:
  /// What is kept of the critical path: sums and its longest pieces, or every piece (some 200 bytes
  /// each) in Figures::path too.
  enum class Path : std::uint8_t { kSums, kWhole };

  explicit Analysis(Path path = Path::kSums);
  ~Analysis() override;
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  void OnHeader(const traces::Header& header) override;
  void OnEvents(std::span<const traces::Event> events) override;
  void OnMemory(std::span<const traces::MemoryCounter> counters) override;
  void OnTrailer(const traces::Trailer& trailer) override;

  /// Needs OnTrailer to have been called.
  const Figures& figures() const;

 private:
  void TakeTimes(const traces::Trailer& trailer);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isthmus::reports
