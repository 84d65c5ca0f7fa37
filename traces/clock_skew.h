#pragma once

#include <cstdint>
#include <vector>

#include "traces/recorder.h"

namespace isthmus::traces {

/// What a rank's clock showed: a time t of it was, by the clock of the reference rank,
/// t - offset_ps - drift · (t - middle_ps).
struct RankClock {
  double offset_ps = 0;
  double drift = 0;             // how much faster it ran, as a fraction
  std::int64_t middle_ps = 0;   // of its own events
  std::uint32_t reference = 0;  // the class whose clock counts: the lowest it is connected with

  bool operator==(const RankClock&) const = default;
};

/// How the clocks of a measured trace stand against each other.
struct ClockSkew {
  std::vector<RankClock> clocks;  // by class
  bool has_offsets = false;       // false: the data are explained as well by one clock
  bool has_drift = false;
  std::int64_t num_samples = 0;  // pairs of ranks that were over with something together
  double residual_ps = 0;        // median of how far apart those ends are, once corrected

  /// By the reference clock.
  std::int64_t Correct(std::uint32_t rank_class, std::int64_t time_ps) const;
};

/// Estimates the skew from what ranks do together.
///
/// Ends. Collectives, matched Compute ops and messages end together on their members. Of every pair
/// of ranks the median of (end here - end there) is taken; offsets are the weighted least-squares
/// solution over the graph of pairs, with the lowest rank of each connected part at 0. Exact when
/// the ends are. Messages weigh little beside collectives: a receiver may ask late.
/// Drift. A line through the medians of the first and the second half of a pair's samples, solved
/// likewise; kept only when it takes the median residual below 0.7 of what constant offsets leave.
/// Causality. No receive ends before its send was posted, no collective that waits for all before
/// its last member came. Offsets are moved as little as that needs.
/// One clock is kept when nothing is violated by it and either all ranks are on one node, which has
/// one clock, or offsets don't even halve the median residual: ranks that wake up late are no skew.
///
/// Needs one class per rank. Cost: O(sum over meetings of members²), at most 32² each.
ClockSkew EstimateClockSkew(const Trace& trace);

/// Puts events, waits and memory on the reference clock, with time 0 where the first rank came to
/// its first op, and the ends of the run and its steps where the last event of each ends. Nothing
/// happens without offsets. Needs starts that know nothing of other ranks (MeetPartners comes
/// after).
void RemoveClockSkew(const ClockSkew& skew, Trace& trace);

/// Makes one trace of what every rank recorded by its own clock: estimates the skew, removes it,
/// and moves the starts of what ranks do together to when the last of them came (MeetPartners). A
/// trace that has been through this comes out as it was.
ClockSkew PutOnOneClock(Trace& trace);

/// PutOnOneClock for ranks that can't tell when what they sent was over: until clocks agree a send
/// is over when it is posted, from then on when its receive is.
ClockSkew PutSendersOnOneClock(Trace& trace);

}  // namespace isthmus::traces
