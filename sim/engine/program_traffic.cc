#include "sim/engine/program_traffic.h"

#include <set>

#include "base/check.h"

namespace isthmus::sim {

ProgramTraffic::ProgramTraffic(const Lowered& lowered, const topology::Cluster& cluster)
    : map_(cluster) {
  ISTHMUS_CHECK(!lowered.folded, "traffic of folded ranks");
  NameSends(lowered, cluster);
  NameCollectives(lowered, cluster);
  NameCopies(lowered, cluster);
  map_.Settle();
}

std::uint32_t ProgramTraffic::Collective(std::uint32_t communicator,
                                         plan::CollectiveKind kind) const {
  const auto at = collectives_.find({communicator, kind});
  return at == collectives_.end() ? plan::kNone32 : at->second;
}

void ProgramTraffic::NameSends(const Lowered& lowered, const topology::Cluster& cluster) {
  for (const LoweredClass& cls : lowered.classes) {
    std::vector<std::uint32_t>& sends = sends_.emplace_back(cls.peers.size(), plan::kNone32);
    const Variant& variant = lowered.variants[cls.variant];
    for (std::size_t at = 0; at < variant.ops->transfers.size(); ++at) {
      const plan::Transfer& transfer = variant.ops->transfers[at];
      if (!transfer.sends || variant.transfer_bytes[at] == 0) continue;
      if (sends[transfer.peer] != plan::kNone32) continue;
      const base::Rank peer = lowered.classes[cls.peers[transfer.peer]].representative;
      sends[transfer.peer] =
          map_.Message(cluster.DeviceOf(cls.representative), cluster.DeviceOf(peer));
    }
  }
}

void ProgramTraffic::NameCollectives(const Lowered& lowered, const topology::Cluster& cluster) {
  // By variant: what kinds of collectives it calls on which of its groups.
  std::vector<std::set<std::pair<std::uint32_t, plan::CollectiveKind>>> calls;
  for (const Variant& variant : lowered.variants) {
    auto& called = calls.emplace_back();
    for (const plan::Op& op : variant.ops->ops) {
      const bool flows = op.kind == plan::OpKind::kCollective && op.group != plan::kNone32 &&
                         op.purpose != plan::Purpose::kScalars && variant.bytes_of(op) > 0;
      if (flows) called.emplace(op.group, op.collective());
    }
  }
  for (const LoweredClass& cls : lowered.classes) {
    for (const auto& [group, kind] : calls[cls.variant]) {
      const std::uint32_t communicator = cls.communicators[group];
      const auto [at, is_new] = collectives_.try_emplace({communicator, kind}, plan::kNone32);
      const std::vector<std::uint32_t>& members = lowered.communicators[communicator].classes;
      if (!is_new || members.size() == 1) continue;
      std::vector<base::DeviceId> gpus;
      for (const std::uint32_t member : members)
        gpus.push_back(cluster.DeviceOf(lowered.classes[member].representative));
      at->second = map_.Collective(kind, gpus);
    }
  }
}

void ProgramTraffic::NameCopies(const Lowered& lowered, const topology::Cluster& cluster) {
  for (const LoweredClass& cls : lowered.classes) {
    auto& copies = copies_.emplace_back();
    copies.fill(plan::kNone32);
    for (const plan::Op& op : lowered.variants[cls.variant].ops->ops) {
      if (op.kind != plan::OpKind::kCopy) continue;
      std::uint32_t& shape = copies[static_cast<std::size_t>(op.copy())];
      if (shape == plan::kNone32)
        shape = map_.Copy(cluster.DeviceOf(cls.representative), op.copy());
    }
  }
}

}  // namespace isthmus::sim
