#include <algorithm>

#include "plan/build/rank_emitter.h"

// Exchanges: transfers between stages of a module and between leaders of two modules.
namespace isthmus::plan {
namespace {

void Append(std::vector<ValueId>& to, const std::vector<ValueId>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

const RankBoundary& RankEmitter::BoundaryOf(int edge, std::int32_t microbatch) const {
  return placed_.boundaries[static_cast<std::size_t>(edge)].At(rank_, microbatch);
}

std::vector<int> RankEmitter::EdgesOf(const Station& station, Way way) const {
  std::vector<int> edges;
  if (job_.placement != Placement::kNonColocated) return edges;
  for (std::size_t index = 0; index < job_.edges.size(); ++index) {
    const bool outgoing =
        job_.edges[index].from == station.module && station.stage + 1 == station.num_stages;
    const bool incoming = job_.edges[index].to == station.module && station.stage == 0;
    if (way == Way::kForward ? outgoing : incoming) edges.push_back(static_cast<int>(index));
  }
  return edges;
}

std::uint16_t RankEmitter::BoundaryPeerIndex(const RankBoundary& here, Way way, bool sends,
                                             std::size_t message) {
  std::size_t index = message;
  if (way == Way::kForward && !sends) index += here.sends_forward.size();
  if (way == Way::kBackward) index += here.sends_forward.size() + here.receives_forward.size();
  if (way == Way::kBackward && !sends) index += here.sends_backward.size();
  return static_cast<std::uint16_t>(index);
}

void RankEmitter::SendToStage(Station& station, Exchange& exchange, Way way, const Turn& turn) {
  const bool forward = way == Way::kForward;
  const Waiting& here = station.at(turn);
  const bool exists = forward ? !station.ends_module(turn)
                              : !station.starts_module(turn) && !here.input_gradients.empty();
  if (!exists) return;
  const ValueId value = forward ? *here.output : here.input_gradients.front();
  const Role& role = writer_.role();
  exchange.sends.push_back(
      {.sends = true,
       .peer = writer_.Peer({.kind = PeerRef::Kind::kPipeline,
                             .module = static_cast<std::uint16_t>(station.module),
                             .delta = static_cast<std::int16_t>(forward ? 1 : -1)}),
       .value = value,
       .size = role.storages[role.values[value].storage].size});
  exchange.consumed.push_back(value);
}

void RankEmitter::ReceiveFromStage(Station& station, Exchange& exchange, Way way,
                                   const Turn& turn) {
  const bool forward = way == Way::kForward;
  const bool exists =
      forward ? !station.starts_module(turn)
              : !station.ends_module(turn) && station.emitter.has_backward_behind() &&
                    placed_.needs_input_gradient(station.module, station.virtual_stage(turn) + 1);
  if (!exists) return;
  const SlotKey key{.what = kSlotShape,
                    .module = static_cast<std::uint16_t>(station.module),
                    .chunk = static_cast<std::uint16_t>(turn.chunk),
                    .extra = forward ? 2U : 3U,
                    .microbatch = station.emitter.size_microbatch(turn)};
  const base::Bytes bytes =
      forward ? station.emitter.input_bytes(turn) : station.emitter.output_bytes(turn);
  const SizeId size = writer_.Size(key, bytes);
  const ValueId value =
      writer_.AddValue({.kind = forward ? ValueKind::kActivation : ValueKind::kGradient,
                        .module = static_cast<std::uint16_t>(station.module),
                        .chunk = static_cast<std::uint16_t>(turn.chunk),
                        .microbatch = turn.microbatch,
                        .size = size});
  exchange.receives.push_back(
      {.sends = false,
       .peer = writer_.Peer({.kind = PeerRef::Kind::kPipeline,
                             .module = static_cast<std::uint16_t>(station.module),
                             .delta = static_cast<std::int16_t>(forward ? -1 : 1)}),
       .value = value,
       .size = size});
  exchange.produced.push_back(value);
  Waiting& here = station.at(turn);
  (forward ? here.inputs : here.output_gradients) = {value};
}

void RankEmitter::SendOverEdge(Station& station, Exchange& exchange, int edge, Way way,
                               const Turn& turn) {
  const bool forward = way == Way::kForward;
  if (!forward && !placed_.edge_has_gradient(edge)) return;
  std::vector<ValueId> held;
  if (forward) {
    held.push_back(*station.at(turn).output);
  } else {
    // Gradients come in edge order, of the edges that have one.
    std::size_t index = 0;
    for (int other = 0; other < edge; ++other) index += placed_.edge_has_gradient(other) ? 1U : 0U;
    held.push_back(station.at(turn).input_gradients[index]);
  }
  held = RunBoundarySteps(edge, way, held, turn.microbatch);
  const RankBoundary& here = BoundaryOf(edge, turn.microbatch);
  const auto& messages = forward ? here.sends_forward : here.sends_backward;
  for (std::size_t index = 0; index < messages.size(); ++index) {
    const SlotKey key{.what = kSlotBoundaryMessage,
                      .module = static_cast<std::uint16_t>(edge),
                      .block = static_cast<std::uint16_t>(index),
                      .extra = forward ? 0U : 1U,
                      .microbatch = SizeMicrobatch(edge, turn.microbatch)};
    exchange.sends.push_back(
        {.sends = true,
         .peer = writer_.Peer({.kind = PeerRef::Kind::kBoundary,
                               .edge = static_cast<std::uint16_t>(edge),
                               .index = BoundaryPeerIndex(here, way, true, index)}),
         .value = held.front(),
         .size = writer_.Size(key, BoundaryBytes(edge, messages[index].tokens.size()))});
    exchange.purpose = Purpose::kBoundary;
  }
  if (!messages.empty()) Append(exchange.consumed, held);
}

void RankEmitter::ReceiveOverEdge(Exchange& exchange, int edge, Way way, int microbatch,
                                  std::vector<ValueId>& received) {
  const bool forward = way == Way::kForward;
  if (!forward && !placed_.edge_has_gradient(edge)) return;
  const RankBoundary& here = BoundaryOf(edge, microbatch);
  const auto& messages = forward ? here.receives_forward : here.receives_backward;
  for (std::size_t index = 0; index < messages.size(); ++index) {
    const SlotKey key{.what = kSlotBoundaryMessage,
                      .module = static_cast<std::uint16_t>(edge),
                      .block = static_cast<std::uint16_t>(index),
                      .extra = forward ? 2U : 3U,
                      .microbatch = SizeMicrobatch(edge, microbatch)};
    const SizeId size = writer_.Size(key, BoundaryBytes(edge, messages[index].tokens.size()));
    const ValueId value = writer_.AddValue(BoundaryStorage(edge, way, microbatch, size));
    exchange.receives.push_back(
        {.sends = false,
         .peer = writer_.Peer({.kind = PeerRef::Kind::kBoundary,
                               .edge = static_cast<std::uint16_t>(edge),
                               .index = BoundaryPeerIndex(here, way, false, index)}),
         .value = value,
         .size = size});
    exchange.purpose = Purpose::kBoundary;
    exchange.produced.push_back(value);
    received.push_back(value);
  }
}

void RankEmitter::RunExchange(Station& station, const PipelineCall& call) {
  Exchange exchange;
  exchange.module = static_cast<std::uint16_t>(station.module);
  std::map<int, std::vector<ValueId>> arrived_forward;
  std::map<int, std::vector<ValueId>> arrived_backward;
  if (call.send_forward.exists()) {
    SendToStage(station, exchange, Way::kForward, call.send_forward);
    for (const int edge : EdgesOf(station, Way::kForward)) {
      SendOverEdge(station, exchange, edge, Way::kForward, call.send_forward);
    }
  }
  if (call.send_backward.exists()) {
    SendToStage(station, exchange, Way::kBackward, call.send_backward);
    for (const int edge : EdgesOf(station, Way::kBackward)) {
      SendOverEdge(station, exchange, edge, Way::kBackward, call.send_backward);
    }
  }
  if (call.receive_forward.exists()) {
    ReceiveFromStage(station, exchange, Way::kForward, call.receive_forward);
    for (const int edge : EdgesOf(station, Way::kBackward)) {
      ReceiveOverEdge(exchange, edge, Way::kForward, call.receive_forward.microbatch,
                      arrived_forward[edge]);
    }
  }
  if (call.receive_backward.exists()) {
    ReceiveFromStage(station, exchange, Way::kBackward, call.receive_backward);
    for (const int edge : EdgesOf(station, Way::kForward)) {
      ReceiveOverEdge(exchange, edge, Way::kBackward, call.receive_backward.microbatch,
                      arrived_backward[edge]);
    }
  }
  exchange.turn =
      std::max({call.send_forward, call.receive_forward, call.send_backward, call.receive_backward},
               [](const Turn& a, const Turn& b) { return a.microbatch < b.microbatch; });
  Post(exchange);
  for (auto& [edge, pieces] : arrived_forward) {
    Append(station.at(call.receive_forward).inputs,
           RunBoundarySteps(edge, Way::kForward, pieces, call.receive_forward.microbatch));
  }
  for (auto& [edge, pieces] : arrived_backward) {
    if (!placed_.edge_has_gradient(edge)) continue;
    Append(station.at(call.receive_backward).output_gradients,
           RunBoundarySteps(edge, Way::kBackward, pieces, call.receive_backward.microbatch));
  }
}

void RankEmitter::Post(const Exchange& exchange) {
  std::vector<Transfer> transfers = exchange.receives;
  transfers.insert(transfers.end(), exchange.sends.begin(), exchange.sends.end());
  if (transfers.empty()) return;
  Op op{.kind = OpKind::kP2P, .purpose = exchange.purpose};
  op.lane = writer_.P2PLane();
  op.module = exchange.module;
  op.microbatch = exchange.turn.microbatch;
  op.chunk = static_cast<std::uint16_t>(exchange.turn.chunk);
  op.step = static_cast<std::int16_t>(state_.step);
  std::vector<ValueId> consumed = exchange.consumed;
  // The host asks for what comes next when it has launched the forward or backward before.
  for (const ValueId value : exchange.sends.empty() ? turn_end_ : std::vector<ValueId>{}) {
    if (writer_.Newest(value) == value) consumed.push_back(value);
  }
  if (job_.schedule.protocol == MessageProtocol::kShapeThenPayload) {
    // Two blocking exchanges per call: shapes (three int64) both ways, then the tensors.
    std::vector<Transfer> shapes = transfers;
    std::vector<ValueId> shape_values;
    const SizeId size = writer_.Size({.what = kSlotShape}, base::Bytes{24});
    for (Transfer& shape : shapes) {
      shape.size = size;
      if (shape.sends) continue;
      shape.value = writer_.AddValue(
          {.kind = ValueKind::kScalar, .category = MemoryCategory::kWorkspace, .size = size});
      shape_values.push_back(shape.value);
    }
    op.flags = kBlocksHost;
    writer_.Add(op, consumed, shape_values, shapes);
  }
  writer_.Add(op, consumed, exchange.produced, transfers);
}

}  // namespace isthmus::plan
