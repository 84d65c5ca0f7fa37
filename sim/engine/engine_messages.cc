// P2P ops: posts, rendezvous, ends of transfers.
#include <algorithm>

#include "sim/engine/engine.h"

namespace isthmus::sim {

void Engine::Post(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  const Variant& here = variant(cls);
  const plan::Op& what = here.ops->ops[op];
  ClassState& state = classes_[cls];
  state.posted[op] = true;
  ++result_.num_ops;
  result_.times[cls].start_ps[op] = now;
  result_.times[cls].end_ps[op] = now;
  Record({cls, op, 0, now, now, now});
  const std::uint32_t next = here.graph->AfterPost(op);
  if (next != plan::kNone32) ReleaseList(cls, {&next, 1});
  std::uint16_t left = 0;
  for (std::uint32_t index = what.first_transfer; index < what.first_transfer + what.num_transfers;
       ++index) {
    if (here.transfer_bytes[index] > 0) {
      ++left;
    } else {
      ReleaseList(cls, here.graph->AfterTransfer(index));
    }
  }
  state.pending[op] = left;
  if (left == 0) {
    ++state.num_done;
    if ((what.flags & plan::kBlocksHost) != 0) HostWaited(cls, op, now);
    Release(cls, op, now);
    return;
  }
  StartTransfers(cls, op, now);
}

void Engine::StartTransfers(std::uint32_t cls, std::uint32_t op, std::int64_t now) {
  const plan::Role& role = *variant(cls).ops;
  const plan::Op& what = role.ops[op];
  for (std::uint32_t index = what.first_transfer; index < what.first_transfer + what.num_transfers;
       ++index) {
    const std::uint32_t slot = role.transfers[index].peer;
    const std::uint32_t peer = lowered_.classes[cls].peers[slot];
    const std::uint32_t partner = lowered_.classes[cls].matches[slot]->partner[index];
    if (partner == plan::kNone32) continue;
    const std::uint32_t partner_op = variant(peer).graph->OpOfTransfer(partner);
    if (!classes_[peer].posted[partner_op]) continue;
    MaybeStart(cls, index, now);
    // The other side waited for us, perhaps in several messages of one class.
    const plan::Op& other = variant(peer).ops->ops[partner_op];
    for (std::uint32_t theirs = other.first_transfer;
         theirs < other.first_transfer + other.num_transfers; ++theirs) {
      const std::uint32_t their_slot = variant(peer).ops->transfers[theirs].peer;
      if (lowered_.classes[peer].peers[their_slot] != cls) continue;
      const std::uint32_t ours = lowered_.classes[peer].matches[their_slot]->partner[theirs];
      if (ours != plan::kNone32 && variant(cls).graph->OpOfTransfer(ours) == op)
        MaybeStart(peer, theirs, now);
    }
  }
}

void Engine::MaybeStart(std::uint32_t cls, std::uint32_t transfer, std::int64_t now) {
  ClassState& state = classes_[cls];
  if (state.started[transfer]) return;
  state.started[transfer] = true;
  // Until it is over, the place of its end holds its start.
  result_.times[cls].transfer_end_ps[transfer] = now;
  if (FlowsMessage(cls, transfer, now)) return;
  const std::int64_t duration = TransferDurationOf(cls, transfer);
  const std::int64_t core = shares(cls) ? CoreTimeOf(cls, transfer) : 0;
  if (core == 0) {
    Push(now, duration, {.what = What::kTransferEnd, .a = cls, .b = transfer});
  } else {
    Push(now, duration - core, {.what = What::kTransferWaited, .a = cls, .b = transfer});
  }
}

std::int64_t Engine::CoreTimeOf(std::uint32_t cls, std::uint32_t transfer) const {
  const MatchTable& match =
      *lowered_.classes[cls].matches[variant(cls).ops->transfers[transfer].peer];
  return std::min(match.core_ps[transfer], match.duration_ps[transfer]);
}

void Engine::EndTransfer(std::uint32_t cls, std::uint32_t transfer, std::int64_t now) {
  const OpGraph& graph = *variant(cls).graph;
  const std::uint32_t op = graph.OpOfTransfer(transfer);
  ClassTimes& times = result_.times[cls];
  const std::uint32_t inner = transfer - variant(cls).ops->ops[op].first_transfer + 1;
  Record({cls, op, inner, times.start_ps[op], times.transfer_end_ps[transfer], now});
  times.transfer_end_ps[transfer] = now;
  ReleaseList(cls, graph.AfterTransfer(transfer));
  if (--classes_[cls].pending[op] > 0) return;
  ++classes_[cls].num_done;
  const bool blocks = (variant(cls).ops->ops[op].flags & plan::kBlocksHost) != 0;
  if (blocks) HostWaited(cls, op, now);
  Release(cls, op, now);
}

}  // namespace isthmus::sim
