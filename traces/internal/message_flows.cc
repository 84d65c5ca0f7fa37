#include "traces/internal/message_flows.h"

#include <algorithm>
#include <limits>
#include <map>

namespace isthmus::traces::internal {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

}  // namespace

// The transfers of one class with one peer in one direction, in order.
struct MessageFlows::Stream {
  std::uint32_t from = 0;  // class of the sender
  std::uint32_t to = 0;
  std::vector<std::size_t> transfers;
};

MessageFlows::MessageFlows(const Header& header, std::vector<TransferEvent> transfers)
    : header_(header), transfers_(std::move(transfers)), sender_(transfers_.size(), kNone) {
  std::sort(transfers_.begin(), transfers_.end(),
            [](const TransferEvent& a, const TransferEvent& b) { return a.Key() < b.Key(); });
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  const std::vector<Stream> sends = CollectStreams(true);
  std::map<Pair, std::vector<const Stream*>> sends_of;
  for (const Stream& stream : sends) sends_of[{stream.from, stream.to}].push_back(&stream);

  std::map<Pair, std::size_t> num_received;
  for (const Stream& receive : CollectStreams(false)) {
    const Pair pair{receive.from, receive.to};
    const auto found = sends_of.find(pair);
    if (found == sends_of.end()) continue;
    const std::vector<const Stream*>& alike = found->second;
    Match(*alike[num_received[pair]++ % alike.size()], receive);
  }
  std::sort(departures_.begin(), departures_.end());
}

std::vector<MessageFlows::Stream> MessageFlows::CollectStreams(bool sends) const {
  // By class and peer index, so that streams come in a fixed order.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Stream> streams;
  for (std::size_t index = 0; index < transfers_.size(); ++index) {
    const TransferEvent& event = transfers_[index];
    const RankClass& rank_class = header_.classes[event.rank_class];
    const TransferRecord& transfer =
        header_.roles[rank_class.role].ops[event.op].transfers[event.transfer];
    if (transfer.sends != sends) continue;
    const std::uint32_t peer = rank_class.peers[transfer.peer];
    Stream& stream = streams[{event.rank_class, transfer.peer}];
    stream.from = sends ? event.rank_class : peer;
    stream.to = sends ? peer : event.rank_class;
    stream.transfers.push_back(index);
  }
  std::vector<Stream> result;
  for (auto& [key, stream] : streams) result.push_back(std::move(stream));
  return result;
}

void MessageFlows::Match(const Stream& send, const Stream& receive) {
  const std::size_t count = std::min(send.transfers.size(), receive.transfers.size());
  for (std::size_t index = 0; index < count; ++index) {
    sender_[receive.transfers[index]] = send.transfers[index];
    departures_.emplace_back(send.transfers[index], receive.transfers[index]);
  }
}

std::optional<std::size_t> MessageFlows::Find(const Event& event) const {
  const TransferEvent wanted{event.rank_class, event.op, event.inner - 1, 0};
  const auto found = std::lower_bound(
      transfers_.begin(), transfers_.end(), wanted,
      [](const TransferEvent& a, const TransferEvent& b) { return a.Key() < b.Key(); });
  if (found == transfers_.end() || found->Key() != wanted.Key()) return std::nullopt;
  return static_cast<std::size_t>(found - transfers_.begin());
}

std::optional<MessageFlows::Arrival> MessageFlows::ArrivalOf(const Event& receive) const {
  const std::optional<std::size_t> index = Find(receive);
  if (!index || sender_[*index] == kNone) return std::nullopt;
  return Arrival{.flow = *index + 1, .sent_ps = transfers_[sender_[*index]].start_ps};
}

std::vector<std::uint64_t> MessageFlows::DeparturesOf(const Event& send) const {
  std::vector<std::uint64_t> flows;
  const std::optional<std::size_t> index = Find(send);
  if (!index) return flows;
  auto entry =
      std::lower_bound(departures_.begin(), departures_.end(), std::pair{*index, std::size_t{0}});
  for (; entry != departures_.end() && entry->first == *index; ++entry) {
    flows.push_back(entry->second + 1);
  }
  return flows;
}

}  // namespace isthmus::traces::internal
