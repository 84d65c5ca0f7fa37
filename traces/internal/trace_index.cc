#include "traces/internal/trace_index.h"

#include <algorithm>

#include <fmt/format.h>

namespace isthmus::traces::internal {
namespace {

std::string Unknown(const char* thing, std::size_t index, std::size_t size) {
  return fmt::format("names {} {}, and there are {}", thing, index, size);
}

// A wait, or a kernel: something of an op that takes place for a time.
template <typename Happening>
Event AsEvent(const Happening& one) {
  return {.rank_class = one.rank_class,
          .op = one.op,
          .issue_ps = one.start_ps,
          .start_ps = one.start_ps,
          .end_ps = one.end_ps};
}

}  // namespace

Defect TraceIndex::DefectOfOp(const RoleRecord& role, const OpRecord& op) const {
  if (op.lane >= role.lanes.size()) return Unknown("lane", op.lane, role.lanes.size());
  if (op.module >= header_.modules.size()) {
    return Unknown("module", op.module, header_.modules.size());
  }
  if (op.group > role.groups.size()) {
    return Unknown("communicator", op.group - 1, role.groups.size());
  }
  if (op.block > role.blocks.size()) return Unknown("block", op.block - 1, role.blocks.size());
  for (const Dependency& dependency : op.dependencies) {
    if (dependency.op >= role.ops.size()) return Unknown("op", dependency.op, role.ops.size());
    const std::size_t transfers = role.ops[dependency.op].transfers.size();
    if (dependency.transfer > transfers) {
      return Unknown("transfer", dependency.transfer - 1, transfers);
    }
  }
  return std::nullopt;
}

Defect TraceIndex::DefectOfClass(const RankClass& rank_class, std::size_t num_peers) const {
  const RoleRecord& role = header_.roles[rank_class.role];
  if (rank_class.groups.size() != role.groups.size()) {
    return fmt::format("has {} communicators of a rank class whose role has {}",
                       rank_class.groups.size(), role.groups.size());
  }
  for (const std::uint32_t group : rank_class.groups) {
    if (group >= header_.groups.size()) {
      return Unknown("communicator", group, header_.groups.size());
    }
  }
  if (rank_class.peers.size() < num_peers) {
    return fmt::format("has {} peers of a rank class whose role talks to {}",
                       rank_class.peers.size(), num_peers);
  }
  for (const std::uint32_t peer : rank_class.peers) {
    if (peer >= header_.classes.size()) return Unknown("rank class", peer, header_.classes.size());
  }
  return std::nullopt;
}

Defect TraceIndex::DefectOfHeader() const {
  std::vector<std::size_t> num_peers(header_.roles.size(), 0);
  for (std::size_t role = 0; role < header_.roles.size(); ++role) {
    for (const OpRecord& op : header_.roles[role].ops) {
      if (Defect defect = DefectOfOp(header_.roles[role], op)) return defect;
      for (const TransferRecord& transfer : op.transfers) {
        num_peers[role] = std::max(num_peers[role], std::size_t{transfer.peer} + 1);
      }
    }
  }
  for (const RankClass& rank_class : header_.classes) {
    if (rank_class.role >= header_.roles.size()) {
      return Unknown("role", rank_class.role, header_.roles.size());
    }
    if (Defect defect = DefectOfClass(rank_class, num_peers[rank_class.role])) return defect;
  }
  for (const std::vector<std::uint32_t>& group : header_.groups) {
    for (const std::uint32_t member : group) {
      if (member >= header_.classes.size()) {
        return Unknown("rank class", member, header_.classes.size());
      }
    }
  }
  return std::nullopt;
}

Defect TraceIndex::DefectOf(const Event& event) const {
  if (event.rank_class >= num_classes()) {
    return Unknown("rank class", event.rank_class, num_classes());
  }
  const RoleRecord& role = RoleOf(event);
  if (event.op >= role.ops.size()) return Unknown("op", event.op, role.ops.size());
  const OpRecord& op = role.ops[event.op];
  if (HasTransfers(op) && event.inner > op.transfers.size()) {
    return Unknown("transfer", event.inner - 1, op.transfers.size());
  }
  if (event.end_ps < event.start_ps) {
    return fmt::format("has an event that ends at {} ps, before its start at {} ps", event.end_ps,
                       event.start_ps);
  }
  return std::nullopt;
}

PieceRecord TraceIndex::PieceOf(const Event& event) const {
  const OpRecord& op = OpOf(event);
  const std::uint32_t number = (event.inner - 1) / 2;
  const bool is_collective = event.inner % 2 == 0;
  PieceRecord piece;
  if (op.block > 0 && number < RoleOf(event).blocks[op.block - 1].size()) {
    piece = RoleOf(event).blocks[op.block - 1][number];
  } else {
    piece = {fmt::format("piece {}", number), op.category};
  }
  if (!is_collective) piece.category = op.category;
  return piece;
}

Defect TraceIndex::DefectOf(const MemoryCounter& counter) const {
  if (counter.rank_class < num_classes()) return std::nullopt;
  return Unknown("rank class", counter.rank_class, num_classes());
}

Defect TraceIndex::DefectOf(const Trailer& trailer) const {
  for (const MemoryPeak& peak : trailer.memory) {
    if (peak.rank_class >= num_classes()) {
      return Unknown("rank class", peak.rank_class, num_classes());
    }
  }
  for (const ImposedWait& wait : trailer.waits) {
    if (Defect defect = DefectOf(AsEvent(wait))) return defect;
  }
  for (const Slowdown& slowdown : trailer.slowdowns) {
    const Event whole{
        .rank_class = slowdown.rank_class, .op = slowdown.op, .end_ps = slowdown.duration_ps};
    if (Defect defect = DefectOf(whole)) return defect;
  }
  for (const KernelRun& kernel : trailer.kernels) {
    if (Defect defect = DefectOf(AsEvent(kernel))) return defect;
    if (kernel.name >= trailer.kernel_names.size()) {
      return Unknown("kernel name", kernel.name, trailer.kernel_names.size());
    }
  }
  return std::nullopt;
}

}  // namespace isthmus::traces::internal
