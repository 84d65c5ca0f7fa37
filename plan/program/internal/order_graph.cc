#include "plan/program/internal/order_graph.h"

#include <algorithm>
#include <utility>

namespace isthmus::plan::internal {

/// Collects the edges op by op, in list order.
class OrderGraph::Builder {
 public:
  Builder(const Role& role, IssueOrder order)
      : role_(role),
        order_(order),
        producer_(role.values.size(), kNone32),
        delivered_by_(role.values.size(), kNone32),
        last_on_lane_(role.lanes.size(), kNone32) {}

  void Add(std::uint32_t index) {
    const Op& op = role_.ops[index];
    events_.clear();
    for (const ValueId value : role_.consumed_by(op)) {
      if (delivered_by_[value] != kNone32) {
        events_.push_back({kTransferEnds, delivered_by_[value]});
      } else if (producer_[value] != kNone32) {
        events_.push_back({kOpEnds, producer_[value]});
      }
    }
    if (blocking_ != kNone32) events_.push_back({kOpEnds, blocking_});
    if (const std::uint32_t before = last_on_lane_[op.lane]; before != kNone32) {
      events_.push_back({role_.ops[before].kind == OpKind::kP2P ? kIsPosted : kOpEnds, before});
    }
    const bool matched = op.kind != OpKind::kP2P && op.group != kNone32;
    if (matched && order_ == IssueOrder::kSerial && last_matched_ != kNone32) {
      events_.push_back({kOpEnds, last_matched_});
    }
    std::sort(events_.begin(), events_.end());
    events_.erase(std::unique(events_.begin(), events_.end()), events_.end());
    for (const auto& [kind, event] : events_) edges_[kind].push_back({event, index});
    prerequisites_.push_back(static_cast<std::uint16_t>(events_.size()));
    Remember(index, op, matched);
  }

  std::vector<std::uint16_t> TakePrerequisites() { return std::move(prerequisites_); }
  const std::vector<Edge>& after_op() const { return edges_[kOpEnds]; }
  const std::vector<Edge>& after_post() const { return edges_[kIsPosted]; }
  const std::vector<Edge>& after_transfer() const { return edges_[kTransferEnds]; }

 private:
  enum EventKind : std::uint8_t { kOpEnds, kIsPosted, kTransferEnds };

  void Remember(std::uint32_t index, const Op& op, bool matched) {
    last_on_lane_[op.lane] = index;
    if (matched) last_matched_ = index;
    if ((op.flags & kBlocksHost) != 0) blocking_ = index;
    for (const ValueId value : role_.produced_by(op)) producer_[value] = index;
    for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
      if (!role_.transfers[at].sends) delivered_by_[role_.transfers[at].value] = at;
    }
  }

  const Role& role_;
  IssueOrder order_;
  std::vector<std::uint32_t> producer_;      // by value: op
  std::vector<std::uint32_t> delivered_by_;  // by value: transfer
  std::vector<std::uint32_t> last_on_lane_;
  std::uint32_t last_matched_ = kNone32;
  std::uint32_t blocking_ = kNone32;
  std::vector<std::pair<EventKind, std::uint32_t>> events_;  // of one op
  std::vector<std::uint16_t> prerequisites_;
  std::vector<Edge> edges_[3];
};

OrderGraph::OrderGraph(const Role& role, IssueOrder order) {
  Builder builder(role, order);
  op_of_transfer_.resize(role.transfers.size());
  for (std::uint32_t index = 0; index < role.ops.size(); ++index) {
    builder.Add(index);
    const Op& op = role.ops[index];
    for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
      op_of_transfer_[at] = index;
    }
  }
  prerequisites_ = builder.TakePrerequisites();
  after_op_ = Pack(builder.after_op(), role.ops.size());
  after_post_ = Pack(builder.after_post(), role.ops.size());
  after_transfer_ = Pack(builder.after_transfer(), role.transfers.size());
}

OrderGraph::Lists OrderGraph::Pack(const std::vector<Edge>& edges, std::size_t num_events) {
  Lists lists;
  lists.first.assign(num_events + 1, 0);
  for (const Edge& edge : edges) ++lists.first[edge.event + 1];
  for (std::size_t event = 0; event < num_events; ++event)
    lists.first[event + 1] += lists.first[event];
  lists.ops.resize(edges.size());
  std::vector<std::uint32_t> next(lists.first.begin(), lists.first.end() - 1);
  for (const Edge& edge : edges) lists.ops[next[edge.event]++] = edge.op;
  return lists;
}

}  // namespace isthmus::plan::internal
