#include "sim/engine/op_graph.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "plan/program/producers.h"

namespace isthmus::sim {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

void AddOnce(std::vector<std::uint32_t>& list, std::uint32_t item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// Distinct prerequisites of one op.
struct Waits {
  std::vector<std::uint32_t> ops;
  std::vector<std::uint32_t> transfers;

  void Clear() {
    ops.clear();
    transfers.clear();
  }
  void Add(const Waits& others) {
    for (const std::uint32_t op : others.ops) AddOnce(ops, op);
    for (const std::uint32_t transfer : others.transfers) AddOnce(transfers, transfer);
  }
};

/// What a host that runs ops itself has done or waited for when it comes to the next op.
class BlockingHost {
 public:
  void AddTo(Waits& waits) const { waits.Add(behind_); }
  void PassedBy(std::uint32_t index, const plan::Op& op, const Waits& waits) {
    const bool goes_on_beside =
        op.kind == plan::OpKind::kCollective || op.kind == plan::OpKind::kP2P;
    if (goes_on_beside) {
      behind_.Add(waits);
      return;
    }
    // Its end is behind everything the host did before.
    behind_.Clear();
    behind_.ops.push_back(index);
  }

 private:
  Waits behind_;
};

}  // namespace

OpGraph::Lists OpGraph::Gather(std::size_t num_keys, const Pairs& pairs) {
  Lists lists;
  lists.first.assign(num_keys + 1, 0);
  for (const auto& [key, item] : pairs) ++lists.first[key + 1];
  for (std::size_t key = 0; key < num_keys; ++key) lists.first[key + 1] += lists.first[key];
  lists.items.resize(pairs.size());
  std::vector<std::uint32_t> next(lists.first.begin(), lists.first.end() - 1);
  for (const auto& [key, item] : pairs) lists.items[next[key]++] = item;
  return lists;
}

OpGraph::OpGraph(const plan::Role& role, HostOrder host_order)
    : prerequisites_(role.ops.size(), 0),
      after_post_(role.ops.size(), plan::kNone32),
      op_of_transfer_(role.transfers.size(), plan::kNone32) {
  const std::vector<plan::Producer> producers = plan::ProducersOf(role);
  std::vector<std::uint32_t> last_on_lane(role.lanes.size(), plan::kNone32);
  std::uint32_t last_blocking = plan::kNone32;
  Pairs after_op;
  Pairs after_transfer;
  Waits waits;
  BlockingHost host;
  for (std::uint32_t index = 0; index < role.ops.size(); ++index) {
    const plan::Op& op = role.ops[index];
    waits.Clear();
    for (std::uint32_t transfer = op.first_transfer;
         transfer < op.first_transfer + op.num_transfers; ++transfer) {
      op_of_transfer_[transfer] = index;
    }
    for (const plan::ValueId value : role.consumed_by(op)) {
      const plan::Producer& producer = producers[value];
      if (producer.op == plan::kNone32) continue;  // there from the start
      ISTHMUS_CHECK(producer.op < index, "op {} of role {} consumes what a later op produces",
                    index, role.name);
      if (producer.transfer != plan::kNone32) {
        AddOnce(waits.transfers, producer.transfer);
      } else {
        AddOnce(waits.ops, producer.op);
      }
    }
    if (host_order == HostOrder::kBlocking) {
      const Waits consumed = waits;
      host.AddTo(waits);
      host.PassedBy(index, op, consumed);
    }
    if (last_blocking != plan::kNone32) AddOnce(waits.ops, last_blocking);
    const std::uint32_t before = last_on_lane[op.lane];
    std::size_t count = waits.transfers.size();
    if (before != plan::kNone32) {
      if (role.ops[before].kind == plan::OpKind::kP2P) {
        after_post_[before] = index;
        ++count;
      } else {
        AddOnce(waits.ops, before);
      }
    }
    last_on_lane[op.lane] = index;
    if ((op.flags & plan::kBlocksHost) != 0) last_blocking = index;
    for (const std::uint32_t other : waits.ops) after_op.emplace_back(other, index);
    for (const std::uint32_t transfer : waits.transfers)
      after_transfer.emplace_back(transfer, index);
    count += waits.ops.size();
    ISTHMUS_CHECK(count <= 0xffffU, "op {} of role {} waits for {} others", index, role.name,
                  count);
    prerequisites_[index] = static_cast<std::uint16_t>(count);
  }
  after_op_ = Gather(role.ops.size(), after_op);
  after_transfer_ = Gather(role.transfers.size(), after_transfer);
}

}  // namespace isthmus::sim
