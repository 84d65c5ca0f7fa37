#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "backend/fake/mailbox.h"
#include "backend/fake/run_clock.h"
#include "base/ids.h"
#include "base/units.h"

namespace isthmus::backend {

/// Messages from one rank to another under strict rendezvous: a message is over when its sender and
/// its receiver have both posted it, never before. Messages match in order.
///
/// Posting never blocks: both sides learn of the end by their mailboxes.
/// Invariant: only one side has postings that aren't matched.
/// Thread-safe. Lifetime: mailboxes and clock must outlive it.
class Channel {
 public:
  enum class Side : std::uint8_t { kSend, kReceive };
  struct Posting {
    base::Bytes bytes{0};
    Mailbox* mailbox = nullptr;
    std::uint32_t transfer = 0;  // comes back in the Completion
  };

  Channel(base::Rank from, base::Rank to, const RunClock& clock)
      : from_(from), to_(to), clock_(clock) {}

  /// Throws base::Error if the partner's message has another size.
  void Post(Side side, const Posting& posting);

  base::Rank from() const { return from_; }
  base::Rank to() const { return to_; }
  /// Sizes of the messages that are over, in order.
  std::vector<base::Bytes> messages() const;
  /// Postings of `side` that wait for their partner.
  std::size_t num_waiting(Side side) const;

 private:
  base::Rank from_;
  base::Rank to_;
  const RunClock& clock_;
  mutable std::mutex mutex_;
  std::deque<Posting> sends_;
  std::deque<Posting> receives_;
  std::vector<base::Bytes> messages_;
};

}  // namespace isthmus::backend
