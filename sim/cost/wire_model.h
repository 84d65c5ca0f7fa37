#pragma once

#include "sim/cost/collective_model.h"

namespace isthmus::sim {

/// Whether an all-reduce in one node is summed by the switches (NVLink SHARP)
/// or by the GPUs.
enum class Reduction { kInGpus, kInSwitch };

/// Bytes that the busiest link of each kind must carry, per direction, whatever
/// the algorithm.
///
/// n ranks on N nodes, q NICs used in a node, p ranks in a node:
/// NVLink of a GPU, one node: all-gather, reduce-scatter, all-to-all S(n-1)/n;
/// all-reduce 2S(n-1)/n, in the switch S(n+1)/n; broadcast, reduce and ring
/// exchange S. NIC, several nodes: all-gather, reduce-scatter S(N-1)/(N·q);
/// all-reduce 2S(N-1)/(N·q); all-to-all p·S(N-1)/(N·q); broadcast, reduce S/q;
/// ring exchange S. These are bounds on bytes, not busbw: an all-reduce by
/// NVLink SHARP or by a tree over two nodes shows a busbw above the link's rate
/// and is right.
struct WireBytes {
  double nvlink = 0;
  double nic = 0;
};
WireBytes WireBytesOf(plan::CollectiveKind kind, base::Bytes size,
                      const topology::GroupLocality& group, Reduction reduction);

/// The least time the links allow: the bytes of the busiest link over its rate;
/// no latencies.
///
/// Use: the bound that NcclModel is held to, and the question what a perfect
/// network library would gain. Reductions count as done by the switch where
/// that is less.
class WireModel : public CollectiveModel {
 public:
  base::Seconds Time(plan::CollectiveKind kind, base::Bytes size,
                     const topology::GroupLocality& group) const override;
  base::Seconds P2P(base::Bytes size, const topology::Route& route) const override;
  base::Seconds Copy(base::Bytes size, plan::CopyDirection direction,
                     const topology::Route& route) const override;
};

/// WireBytes over the group's slowest links.
base::Seconds WireTime(const WireBytes& bytes, const topology::GroupLocality& group);

}  // namespace isthmus::sim
