#include "backend/torch/dtype.h"
#include "backend/torch/execute/executor.h"
#include "base/check.h"

// P2P ops: messages between stages and between leaders.
namespace isthmus::backend {

void Executor::Exchange(const plan::Op& op) {
  std::vector<std::uint32_t> transfers;
  std::vector<Message> messages;
  for (std::uint32_t at = op.first_transfer; at < op.first_transfer + op.num_transfers; ++at) {
    Message message = role_.transfers[at].sends ? ToSend(at) : ToReceive(at);
    if (message.tensor.numel() == 0) continue;
    transfers.push_back(at);
    messages.push_back(std::move(message));
  }
  std::vector<Pending> posted = communicators_.messages().Exchange(messages);
  for (std::size_t at = 0; at < posted.size(); ++at) {
    const plan::Transfer& transfer = role_.transfers[transfers[at]];
    if (options_.recorder != nullptr)
      options_.recorder->WatchTransfer(position_, transfers[at], posted[at]);
    auto& pending = transfer.sends ? sends_ : values_.At(transfer.value).pending;
    pending.push_back(std::move(posted[at]));
  }
}

at::Tensor Executor::EmptyFor(const plan::Storage& storage, std::int64_t bytes) const {
  const plan::PlacedModule& placed = program_.modules[storage.module];
  const at::ScalarType type = ToTorch(plan::ActivationType(placed.module.settings));
  std::int64_t width = placed.module.transformer.hidden;
  if (storage.category == plan::MemoryCategory::kBoundary)
    width = boundaries_[program_.EdgeFrom(storage.module)].width();
  const std::int64_t row_bytes = width * static_cast<std::int64_t>(c10::elementSize(type));
  ISTHMUS_CHECK(bytes % row_bytes == 0, "a message of {} bytes in rows of {}", bytes, row_bytes);
  return at::empty({bytes / row_bytes, width},
                   at::TensorOptions(device_.torch_device()).dtype(type));
}

Message Executor::ToReceive(std::uint32_t at) {
  const plan::Transfer& transfer = role_.transfers[at];
  const plan::PeerRef& peer = role_.peers[transfer.peer];
  const std::int64_t bytes = program_.Size(rank_, transfer.size).value();
  HeldValue& value = values_.At(transfer.value);
  value.tensor = EmptyFor(values_.StorageOf(transfer.value), bytes);
  if (peer.kind == plan::PeerRef::Kind::kBoundary) {
    const std::int32_t microbatch = values_.StorageOf(transfer.value).microbatch;
    value.tokens = boundaries_[peer.edge].Message(peer.index, microbatch).tokens;
  }
  return {.tensor = value.tensor, .peer = program_.Peer(rank_, peer).value(), .sends = false};
}

Message Executor::ToSend(std::uint32_t at) {
  const plan::Transfer& transfer = role_.transfers[at];
  const plan::PeerRef& peer = role_.peers[transfer.peer];
  const std::int64_t bytes = program_.Size(rank_, transfer.size).value();
  if (bytes == 0) return {.tensor = at::empty({0}), .sends = true};
  const HeldValue& value = values_.At(transfer.value);
  at::Tensor rows = value.tensor.contiguous();
  if (peer.kind == plan::PeerRef::Kind::kBoundary) {
    const BoundaryTransform& boundary = boundaries_[peer.edge];
    const std::int32_t microbatch = values_.StorageOf(transfer.value).microbatch;
    rows = boundary.MessageRows(value, boundary.Message(peer.index, microbatch).tokens);
  }
  ISTHMUS_CHECK(static_cast<std::int64_t>(rows.nbytes()) == bytes,
                "rank {} sends {} bytes, the program says {}", rank_.value(), rows.nbytes(), bytes);
  return {.tensor = rows, .peer = program_.Peer(rank_, peer).value(), .sends = true};
}

}  // namespace isthmus::backend
