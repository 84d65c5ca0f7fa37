#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "profiles/profile.h"
#include "sim/cost/collective_model.h"
#include "sim/cost/node_form.h"
#include "sim/cost/wire_model.h"

namespace isthmus::sim {

/// Communication by NCCL as measured, in closed forms.
///
/// W is nccl-tests' bus size: S(n-1)/n for all-gather, reduce-scatter,
/// all-to-all; 2S(n-1)/n for all-reduce; S for broadcast and reduce. MB = 1e6
/// bytes.
///
/// One node, ranks n:   NodeForm: t = a + W/B + c·(W/1 MB)^g  by kind and n
///   Between measured n (2, 4, 8) the times at equal W are interpolated
///   linearly in n; above the largest its form is taken with the larger W.
///   With `collective.nvls.enabled` 0, a form of which the switch does the
///   reduction is not used: an all-reduce is then reduce-scatter + all-gather.
///   Broadcast uses all-gather's form, reduce reduce-scatter's. B shrinks with
///   the slowest NVLink of the group.
/// Several nodes N, q NICs used in a node, n ranks:
///   all-reduce         t = a·log2 N + W/B_q + c·(1 + e·log2 N)·(W/1 MB)^g
///     B_q is the measured rate (of two nodes, of more) when at least 8 NICs
///     serve a node, scaled by slower NICs; else q·(NIC rate)·efficiency, which
///     it never exceeds
///   gather, scatter    t = a + W/min(q·NIC·eff, NVLink·eff') + hop·(n-1);
///   broadcast, reduce too all-to-all         t = a + (bytes that leave a
///   node)/(q·NIC·eff)
/// Ring exchange, P2P:  t = a + S/(eff·bottleneck), in a node or across
/// Copy:                t = a + S/min(B, PCIe)
///
/// Source: `collective.*`, `p2p.*`, `copy.*` of the profile;
/// scripts/fit/fit_collectives.py. Validity: 4 KiB to 8 GiB in a node, residual
/// median 0.4-4.5 % above 2 MB; full nodes across, median 4.8 %. Oversubscribed
/// spines and other traffic are not in it. Always on: no collective is faster
/// than its wire bytes allow (WireBytes); a profile that says so is refused
/// with base::Error. Pinned by tests/unit/sim/nccl_model_test.cc; derivation:
/// docs/models/collectives.md.
/// Ranks that share a GPU are refused with base::Error, as NCCL refuses them.
/// Cost: below 200 ns.
class NcclModel : public CollectiveModel {
 public:
  explicit NcclModel(const profiles::Profile& profile);

  base::Seconds Time(plan::CollectiveKind kind, base::Bytes size,
                     const topology::GroupLocality& group) const override;
  base::Seconds P2P(base::Bytes size, const topology::Route& route) const override;
  base::Seconds Copy(base::Bytes size, plan::CopyDirection direction,
                     const topology::Route& route) const override;

 private:
  using NodeForms = std::map<int, NodeForm>;  // by number of ranks

  struct AcrossReduce {
    double latency_per_doubling = 0;
    double bandwidth_two_nodes = 0;
    double bandwidth = 0;
    double ramp = 0;
    double ramp_growth = 0;
    double ramp_exponent = 0;
  };
  struct AcrossGather {
    double latency = 0;
    double hop_latency = 0;
    double nic_efficiency = 0;
    double nvlink_efficiency = 0;
    double all_to_all_latency = 0;
  };
  struct PointToPoint {
    double latency = 0;
    double efficiency = 0;
  };

  const NodeForms& FormsOf(plan::CollectiveKind kind) const;
  bool ReducesInSwitch(plan::CollectiveKind kind, const topology::GroupLocality& group) const;
  double InNode(plan::CollectiveKind kind, double size, const topology::GroupLocality& group) const;
  double AcrossNodes(plan::CollectiveKind kind, double size,
                     const topology::GroupLocality& group) const;
  double ReduceAcross(double bus_bytes, const topology::GroupLocality& group) const;
  double RingExchange(double size, const topology::GroupLocality& group) const;
  void CheckBound(plan::CollectiveKind kind, base::Bytes size, const topology::GroupLocality& group,
                  double time) const;

  std::string profile_name_;
  std::array<NodeForms, 4> node_forms_;  // all_reduce, all_gather, reduce_scatter, all_to_all
  AcrossReduce across_reduce_;
  AcrossGather across_gather_;
  PointToPoint p2p_in_node_;
  PointToPoint p2p_across_;
  double nvlink_bandwidth_ = 0;  // of the machines that the forms were fitted on
  double nic_bandwidth_ = 0;
  bool use_switch_ = true;
  double copy_latency_ = 0;
  std::array<double, 2> copy_bandwidth_{};  // by CopyDirection
};

}  // namespace isthmus::sim
