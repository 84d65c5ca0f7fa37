#include "sim/cost/nccl_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace isthmus::sim {
namespace {

using plan::CollectiveKind;
using topology::GroupLocality;

constexpr double kBytesPerMb = 1e6;
constexpr double kTolerance = 1e-9;  // rounding where a form meets the bound
// NICs of a node in the rows that the all-reduce across nodes was fitted to.
constexpr int kMeasuredNics = 8;

constexpr std::array<const char*, 4> kNodeKinds = {"all_reduce", "all_gather", "reduce_scatter",
                                                   "all_to_all"};

std::size_t NodeKindOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 0;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBroadcast:  // a pipelined copy, as a gather's
      return 1;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduce:
      return 2;
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV:
      return 3;
    case CollectiveKind::kRingExchange:
      break;
  }
  ISTHMUS_CHECK(false, "no collective in a node is a {}", plan::ToText(kind));
  return 0;
}

/// W of nccl-tests.
double BusBytes(CollectiveKind kind, double size, double n) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * size * (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kRingExchange:
      return size;
    default:
      return size * (n - 1) / n;
  }
}

/// W over the size.
template <CollectiveKind kKind>
double BusFactor(int num_ranks) {
  return BusBytes(kKind, 1, num_ranks);
}

}  // namespace

NcclModel::NcclModel(const profiles::Profile& profile)
    : profile_name_(profile.name()),
      across_reduce_{.latency_per_doubling =
                         profile.Value("collective.nodes.all_reduce.latency_per_doubling", "s"),
                     .bandwidth_two_nodes =
                         profile.Value("collective.nodes.all_reduce.bandwidth_2_nodes", "B/s"),
                     .bandwidth = profile.Value("collective.nodes.all_reduce.bandwidth", "B/s"),
                     .ramp = profile.Value("collective.nodes.all_reduce.ramp", "s"),
                     .ramp_growth = profile.Number("collective.nodes.all_reduce.ramp_growth"),
                     .ramp_exponent = profile.Number("collective.nodes.all_reduce.ramp_exponent")},
      across_gather_{
          .latency = profile.Value("collective.nodes.gather.latency", "s"),
          .hop_latency = profile.Value("collective.nodes.gather.hop_latency", "s"),
          .nic_efficiency = profile.Number("collective.nodes.gather.nic_efficiency"),
          .nvlink_efficiency = profile.Number("collective.nodes.gather.nvlink_efficiency"),
          .all_to_all_latency = profile.Value("collective.nodes.all_to_all.latency", "s")},
      p2p_in_node_{.latency = profile.Value("p2p.intra_node.latency", "s"),
                   .efficiency = profile.Number("p2p.intra_node.nvlink_efficiency")},
      p2p_across_{.latency = profile.Value("p2p.inter_node.latency", "s"),
                  .efficiency = profile.Number("p2p.inter_node.nic_efficiency")},
      nvlink_bandwidth_(profile.Bandwidth("device.nvlink_bandwidth").value()),
      nic_bandwidth_(profile.Bandwidth("device.nic_bandwidth").value()),
      use_switch_(profile.Number("collective.nvls.enabled") != 0),
      copy_latency_(profile.Value("copy.latency", "s")),
      copy_bandwidth_{profile.Value("copy.to_host.bandwidth", "B/s"),
                      profile.Value("copy.to_device.bandwidth", "B/s")} {
  static_assert(static_cast<int>(plan::CopyDirection::kToHost) == 0);
  for (std::size_t i = 0; i < kNodeKinds.size(); ++i) {
    node_forms_[i] =
        ReadNodeForms(profile, kNodeKinds[i],
                      i == 0 ? BusFactor<CollectiveKind::kAllReduce>
                             : BusFactor<CollectiveKind::kAllGather>);  // as scatters, exchanges
  }
}

const NcclModel::NodeForms& NcclModel::FormsOf(CollectiveKind kind) const {
  return node_forms_[NodeKindOf(kind)];
}

bool NcclModel::ReducesInSwitch(CollectiveKind kind, const GroupLocality& group) const {
  if (kind != CollectiveKind::kAllReduce || group.num_nodes != 1) return false;
  const NodeForms& forms = FormsOf(kind);
  const auto above = forms.lower_bound(group.num_ranks);
  return (above == forms.end() ? forms.rbegin()->second : above->second).in_switch;
}

double NcclModel::InNode(CollectiveKind kind, double size, const GroupLocality& group) const {
  if (kind == CollectiveKind::kRingExchange) return RingExchange(size, group);
  if (ReducesInSwitch(kind, group) && !use_switch_) {
    // A ring's two passes.
    return InNode(CollectiveKind::kReduceScatter, size, group) +
           InNode(CollectiveKind::kAllGather, size, group);
  }
  const NodeForms& forms = FormsOf(kind);
  const int n = group.num_ranks;
  const double bus_bytes = BusBytes(kind, size, n);
  const double share = std::min(1.0, group.slowest_nvlink.value() / nvlink_bandwidth_);
  const auto above = forms.lower_bound(n);
  if (above == forms.end()) return forms.rbegin()->second.Time(bus_bytes, share);
  if (above->first == n || above == forms.begin()) return above->second.Time(bus_bytes, share);
  const auto below = std::prev(above);
  const double weight = static_cast<double>(n - below->first) / (above->first - below->first);
  return (1 - weight) * below->second.Time(bus_bytes, share) +
         weight * above->second.Time(bus_bytes, share);
}

double NcclModel::ReduceAcross(double bus_bytes, const GroupLocality& group) const {
  const double doublings = std::log2(static_cast<double>(group.num_nodes));
  const double measured =
      group.num_nodes == 2 ? across_reduce_.bandwidth_two_nodes : across_reduce_.bandwidth;
  const double nic = group.slowest_nic.value();
  const int nics = group.min_nics_per_node;
  const double by_nics = nics * nic * across_gather_.nic_efficiency;
  const double bandwidth = nics >= kMeasuredNics ? measured * std::min(1.0, nic / nic_bandwidth_)
                                                 : std::min(measured, by_nics);
  return across_reduce_.latency_per_doubling * doublings + bus_bytes / bandwidth +
         across_reduce_.ramp * (1 + across_reduce_.ramp_growth * doublings) *
             std::pow(bus_bytes / kBytesPerMb, across_reduce_.ramp_exponent);
}

double NcclModel::RingExchange(double size, const GroupLocality& group) const {
  if (group.num_nodes == 1) {
    return p2p_in_node_.latency + size / (p2p_in_node_.efficiency * group.slowest_nvlink.value());
  }
  // The slowest edge of the ring is the one that leaves a node, over one NIC.
  return p2p_across_.latency + size / (p2p_across_.efficiency * group.slowest_nic.value());
}

double NcclModel::AcrossNodes(CollectiveKind kind, double size, const GroupLocality& group) const {
  const double bus_bytes = BusBytes(kind, size, group.num_ranks);
  const double nics_rate =
      group.min_nics_per_node * group.slowest_nic.value() * across_gather_.nic_efficiency;
  switch (kind) {
    case CollectiveKind::kRingExchange:
      return RingExchange(size, group);
    case CollectiveKind::kAllReduce:
      return ReduceAcross(bus_bytes, group);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kAllToAllV: {
      const double leaving = group.max_ranks_per_node * size *
                             (1 - static_cast<double>(group.min_ranks_per_node) / group.num_ranks);
      return across_gather_.all_to_all_latency + leaving / nics_rate;
    }
    default: {
      double rate = nics_rate;
      if (group.max_ranks_per_node > 1) {  // the ring also runs inside the node
        rate = std::min(rate, across_gather_.nvlink_efficiency * group.slowest_nvlink.value());
      }
      return across_gather_.latency + bus_bytes / rate +
             across_gather_.hop_latency * (group.num_ranks - 1);
    }
  }
}

void NcclModel::CheckBound(CollectiveKind kind, base::Bytes size, const GroupLocality& group,
                           double time) const {
  const Reduction reduction =
      use_switch_ && ReducesInSwitch(kind, group) ? Reduction::kInSwitch : Reduction::kInGpus;
  const double bound = WireTime(WireBytesOf(kind, size, group, reduction), group).value();
  if (time < bound * (1 - kTolerance)) {
    throw base::Error(fmt::format(
        "error: profile {}: {} of {} over {} ranks on {} nodes would take {}, but its links "
        "need {}\n  hint: check collective.* against the cluster's links",
        profile_name_, plan::ToText(kind), base::FormatBytes(size), group.num_ranks,
        group.num_nodes, base::FormatSeconds(base::Seconds(time)),
        base::FormatSeconds(base::Seconds(bound))));
  }
}

base::Seconds NcclModel::Time(CollectiveKind kind, base::Bytes size,
                              const GroupLocality& group) const {
  ISTHMUS_CHECK(group.num_ranks > 0 && size >= base::Bytes(0), "{} of {} bytes over {} ranks",
                plan::ToText(kind), size.value(), group.num_ranks);
  if (group.num_ranks == 1 || size == base::Bytes(0)) return base::Seconds(0);
  if (group.num_devices < group.num_ranks) {
    throw base::Error(
        fmt::format("error: a group of {} ranks shares {} GPUs: "
                    "NCCL refuses two ranks on one GPU",
                    group.num_ranks, group.num_devices));
  }
  const auto bytes = static_cast<double>(size.value());
  const double time =
      group.num_nodes == 1 ? InNode(kind, bytes, group) : AcrossNodes(kind, bytes, group);
  CheckBound(kind, size, group, time);
  return base::Seconds(time);
}

base::Seconds NcclModel::P2P(base::Bytes size, const topology::Route& route) const {
  ISTHMUS_CHECK(size >= base::Bytes(0));
  const std::optional<base::BytesPerSecond> bottleneck = route.Bandwidth();
  if (size == base::Bytes(0) || !bottleneck) return base::Seconds(0);
  const bool in_node = route.Kind() <= topology::PathKind::kNvlink;
  const PointToPoint& form = in_node ? p2p_in_node_ : p2p_across_;
  return base::Seconds(form.latency) + size / (*bottleneck * form.efficiency);
}

base::Seconds NcclModel::Copy(base::Bytes size, plan::CopyDirection direction,
                              const topology::Route& route) const {
  ISTHMUS_CHECK(size >= base::Bytes(0));
  if (size == base::Bytes(0)) return base::Seconds(0);
  double rate = copy_bandwidth_[static_cast<std::size_t>(direction)];
  if (const std::optional<base::BytesPerSecond> link = route.Bandwidth())
    rate = std::min(rate, link->value());
  return base::Seconds(copy_latency_) + size / base::BytesPerSecond(rate);
}

}  // namespace isthmus::sim
