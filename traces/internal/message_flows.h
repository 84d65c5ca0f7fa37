#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace isthmus::traces::internal {

/// One transfer that took place: event (op, transfer + 1) of a class.
struct TransferEvent {
  std::uint32_t rank_class = 0;
  std::uint32_t op = 0;
  std::uint32_t transfer = 0;
  std::int64_t start_ps = 0;

  std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> Key() const {
    return {rank_class, op, transfer};
  }
};

/// Which sends and receives of a trace are the two ends of one message.
///
/// Messages match in order per pair of ranks and direction, so the k-th send of a class to a peer
/// is the k-th receive there. Where ranks are recorded together, a class may have several peers of
/// one class: its r-th stream of receives from class A is laid onto A's stream r mod n of the n
/// that A sends to this class, all of them alike. A receive without a partner gets no flow, so
/// every flow that starts also ends.
///
/// Lifetime: the header must outlive it. Cost: O(n log n) for n transfers; look-ups O(log n).
class MessageFlows {
 public:
  struct Arrival {
    std::uint64_t flow = 0;    // 1 …, the order of receives by class, op and transfer
    std::int64_t sent_ps = 0;  // start of the send
  };

  MessageFlows(const Header& header, std::vector<TransferEvent> transfers);

  /// The flow that ends in a receive.
  std::optional<Arrival> ArrivalOf(const Event& receive) const;
  /// The flows that a send starts: usually one.
  std::vector<std::uint64_t> DeparturesOf(const Event& send) const;

 private:
  struct Stream;
  std::vector<Stream> CollectStreams(bool sends) const;
  void Match(const Stream& send, const Stream& receive);
  std::optional<std::size_t> Find(const Event& event) const;

  const Header& header_;
  std::vector<TransferEvent> transfers_;  // sorted by key
  std::vector<std::size_t> sender_;       // by transfer; kNone for sends and lone receives
  std::vector<std::pair<std::size_t, std::size_t>> departures_;  // (send, receive), sorted
};

}  // namespace isthmus::traces::internal
