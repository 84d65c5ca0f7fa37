// Messages, collectives and copies as flows on a network that they share.
#include <algorithm>

#include "sim/engine/engine.h"

namespace isthmus::sim {

void Engine::OnFlowed(const FlowTag& tag, std::int64_t now) {
  --num_flowing_;
  if (static_cast<What>(tag.what) != What::kTransferEnd) {
    Happen({.what = static_cast<What>(tag.what), .a = tag.a, .b = tag.b}, now);
    return;
  }
  EndTransfer(tag.a, tag.b, now);
  const std::uint32_t slot = variant(tag.a).ops->transfers[tag.b].peer;
  const std::uint32_t peer = lowered_.classes[tag.a].peers[slot];
  // A folded sender stands for several: then the other side receives from each of them, by one op.
  const OpGraph& graph = *variant(peer).graph;
  const plan::Role& role = *variant(peer).ops;
  const plan::Op& receiver =
      role.ops[graph.OpOfTransfer(lowered_.classes[tag.a].matches[slot]->partner[tag.b])];
  const std::uint32_t end = receiver.first_transfer + receiver.num_transfers;
  for (std::uint32_t at = receiver.first_transfer; at < end; ++at) {
    const std::uint32_t from = role.transfers[at].peer;
    if (role.transfers[at].sends || lowered_.classes[peer].peers[from] != tag.a) continue;
    if (lowered_.classes[peer].matches[from]->partner[at] == tag.b) EndTransfer(peer, at, now);
  }
}

std::array<std::uint32_t, 3> Engine::OwnerOf(const FlowTag& tag) const {
  if (static_cast<What>(tag.what) == What::kGroupEnd) {
    const auto [cls, op] = meetings_[tag.a].ops.front();
    return {cls, op, 0};
  }
  if (static_cast<What>(tag.what) == What::kOpEnd) return {tag.a, tag.b, 0};
  const Variant& here = variant(tag.a);
  const std::uint32_t op = here.graph->OpOfTransfer(tag.b);
  return {tag.a, op, tag.b - here.ops->ops[op].first_transfer + 1};
}

void Engine::Flow(std::uint32_t shape, std::int64_t bytes, std::int64_t alone_ps,
                  std::int64_t timed_bytes, plan::Purpose purpose, FlowTag tag, std::int64_t now) {
  FlowNetwork& network = *options_.network;
  ++num_flowing_;
  const std::int64_t wire_ps = network.WirePs(shape, static_cast<double>(timed_bytes));
  // The closed form knows neither all links nor what shares them: bytes cost what the wires take.
  network.Start(now, std::max<std::int64_t>(0, alone_ps - wire_ps), shape,
                static_cast<double>(bytes), purpose, tag);
}

bool Engine::FlowsCollective(std::uint32_t at, std::int64_t now) {
  if (options_.network == nullptr) return false;
  const Meeting& meeting = meetings_[at];
  const auto [cls, index] = meeting.ops.front();
  const plan::Op& op = variant(cls).ops->ops[index];
  if (op.purpose == plan::Purpose::kScalars) return false;
  const std::uint32_t shape = lowered_.traffic->Collective(at / 2, op.collective());
  if (shape == plan::kNone32) return false;
  std::int64_t bytes = 0;
  for (const auto& [member, its_op] : meeting.ops)
    bytes = std::max(bytes, variant(member).bytes_of(variant(member).ops->ops[its_op]));
  Flow(shape, bytes, meeting.duration_ps, bytes, op.purpose, Tag(What::kGroupEnd, at), now);
  return true;
}

bool Engine::FlowsCopy(std::uint32_t cls, std::uint32_t index, std::int64_t now) {
  if (options_.network == nullptr) return false;
  const Variant& here = variant(cls);
  const plan::Op& op = here.ops->ops[index];
  const std::int64_t bytes = here.bytes_of(op);
  if (bytes == 0) return false;
  Flow(lowered_.traffic->Copy(cls, op.copy()), bytes, DurationOf(cls, index), bytes, op.purpose,
       Tag(What::kOpEnd, cls, index), now);
  return true;
}

bool Engine::FlowsMessage(std::uint32_t cls, std::uint32_t transfer, std::int64_t now) {
  if (options_.network == nullptr) return false;
  const Variant& here = variant(cls);
  const plan::Transfer& message = here.ops->transfers[transfer];
  // One flow for both sides, which end together: the sender's.
  if (!message.sends) return true;
  const MatchTable& match = *lowered_.classes[cls].matches[message.peer];
  Flow(lowered_.traffic->Send(cls, message.peer), here.transfer_bytes[transfer],
       TransferDurationOf(cls, transfer), match.timed_bytes[transfer],
       here.ops->ops[here.graph->OpOfTransfer(transfer)].purpose,
       Tag(What::kTransferEnd, cls, transfer), now);
  return true;
}

}  // namespace isthmus::sim
