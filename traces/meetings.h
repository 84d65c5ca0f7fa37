#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/recorder.h"

namespace isthmus::traces {

/// Events of several ranks that are one happening: a collective, a Compute op matched over its
/// group, or the two ends of a message.
struct Meeting {
  /// Into Trace::events, by member in the order of the communicator; of a message: the send, then
  /// the receive. At least two.
  std::vector<std::size_t> events;
  bool is_message = false;
  /// No member can be over before the last has come: reductions, gathers and exchanges of all with
  /// all, not what starts or ends at one rank.
  bool waits_for_all = false;
};

/// Who met whom: the k-th op of each member on a communicator (collectives and Compute ops counted
/// apart), the k-th message from one rank to another. Ops that ran nowhere, and collectives without
/// bytes, met nobody.
///
/// Needs one class per rank. Deterministic: by communicator and k, then by sender, receiver and k.
/// Cost: O(events · log).
std::vector<Meeting> FindMeetings(const Trace& trace);

/// Moves `start` of every event that met others to when the last of them came (the latest `issue`),
/// if it was before, never past its own end. What did not wait for a late partner (a message that
/// left before the receiver asked for it) keeps its start.
///
/// Needs one class per rank and clocks that agree: see PutOnOneClock. Doing it twice changes
/// nothing.
void MeetPartners(Trace& trace);

}  // namespace isthmus::traces
