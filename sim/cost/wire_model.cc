#include "sim/cost/wire_model.h"

#include <algorithm>

#include "base/check.h"

namespace isthmus::sim {
namespace {

using plan::CollectiveKind;

double NvlinkBytes(CollectiveKind kind, double size, double n, Reduction reduction) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return size * (reduction == Reduction::kInSwitch ? std::min((n + 1) / n, 2 * (n - 1) / n)
                                                       : 2 * (n - 1) / n);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      return size * (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kRingExchange:
      return size;
  }
  return 0;
}

double NicBytes(CollectiveKind kind, double size, const topology::GroupLocality& group) {
  const double nodes = group.num_nodes;
  const double nics = std::max(1, group.min_nics_per_node);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * size * (nodes - 1) / (nodes * nics);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return size * (nodes - 1) / (nodes * nics);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      // Of what a node's ranks hold, the part for ranks elsewhere.
      return group.min_ranks_per_node * size *
             (1 - static_cast<double>(group.max_ranks_per_node) / group.num_ranks) / nics;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return size / nics;
    case CollectiveKind::kRingExchange:
      return size;
  }
  return 0;
}

}  // namespace

WireBytes WireBytesOf(CollectiveKind kind, base::Bytes size, const topology::GroupLocality& group,
                      Reduction reduction) {
  ISTHMUS_CHECK(size >= base::Bytes(0) && group.num_ranks > 0);
  WireBytes bytes;
  if (group.num_ranks == 1) return bytes;
  const auto s = static_cast<double>(size.value());
  if (group.num_nodes == 1) {
    bytes.nvlink = NvlinkBytes(kind, s, group.num_ranks, reduction);
  } else {
    bytes.nic = NicBytes(kind, s, group);
  }
  return bytes;
}

base::Seconds WireTime(const WireBytes& bytes, const topology::GroupLocality& group) {
  double time = 0;
  if (bytes.nvlink > 0) time = std::max(time, bytes.nvlink / group.slowest_nvlink.value());
  if (bytes.nic > 0) time = std::max(time, bytes.nic / group.slowest_nic.value());
  return base::Seconds(time);
}

base::Seconds WireModel::Time(CollectiveKind kind, base::Bytes size,
                              const topology::GroupLocality& group) const {
  return WireTime(WireBytesOf(kind, size, group, Reduction::kInSwitch), group);
}

base::Seconds WireModel::P2P(base::Bytes size, const topology::Route& route) const {
  const std::optional<base::BytesPerSecond> rate = route.Bandwidth();
  return rate ? size / *rate : base::Seconds(0);
}

base::Seconds WireModel::Copy(base::Bytes size, plan::CopyDirection /*direction*/,
                              const topology::Route& route) const {
  return P2P(size, route);
}

}  // namespace isthmus::sim
