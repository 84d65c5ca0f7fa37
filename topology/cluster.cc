#include "topology/cluster.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "topology/check_spec.h"
#include "topology/internal/faults.h"

namespace isthmus::topology {

using internal::Block;
using internal::Cable;
using internal::CableEnd;
using internal::GpuPlace;

namespace {

ClusterSpec Checked(ClusterSpec spec) {
  std::string text;
  for (const SpecMistake& mistake : MistakesOf(spec)) {
    text += fmt::format("{}cluster {}: {}: {}\n  hint: {}", text.empty() ? "" : "\n",
                        spec.name.empty() ? "(unnamed)" : spec.name, mistake.path, mistake.what,
                        mistake.hint);
  }
  if (!text.empty()) throw base::Error(text);
  return spec;
}

// The factor of a sorted list's entry, 1 if there is none.
template <typename Id>
double FactorOf(const std::vector<std::pair<Id, double>>& factors, Id id) {
  const auto found = std::lower_bound(
      factors.begin(), factors.end(), id,
      [](const std::pair<Id, double>& entry, Id wanted) { return entry.first < wanted; });
  return found != factors.end() && found->first == id ? found->second : 1;
}

LinkKind KindOf(Cable cable) {
  switch (cable) {
    case internal::kGpuNvlink:
      return LinkKind::kNvlink;
    case internal::kNicLeaf:
    case internal::kCustom:
      return LinkKind::kNic;
    case internal::kLeafSpine:
      return LinkKind::kUplink;
    case internal::kSpineCore:
      return LinkKind::kCore;
    default:
      return LinkKind::kPcie;
  }
}

// Whole ports that carry what comes from below, divided by the oversubscription.
base::BytesPerSecond PortsFor(base::BytesPerSecond below, double oversubscription,
                              base::BytesPerSecond port) {
  // The small number keeps a quotient that is whole but for rounding.
  return port * std::ceil(below.value() / (oversubscription * port.value()) - 1e-9);
}

}  // namespace

Cluster::Cluster(ClusterSpec spec) : spec_(Checked(std::move(spec))), numbering_(spec_) {
  link_factors_ = internal::LinkFactors(spec_, numbering_);
  for (int pod = 0; CountOf(DeviceKind::kCore) > 0 && pod < num_pods(); ++pod) {
    core_link_bandwidths_.push_back(CoreLinkBandwidth(pod));
  }
  if (numbering_.is_custom()) switch_paths_ = LivePaths();
  for (const SlowGpu& slow : spec_.slow_gpus) {
    speed_factors_.emplace_back(slow.device, slow.speed_factor);
  }
  std::sort(speed_factors_.begin(), speed_factors_.end());
}

int Cluster::num_ranks() const {
  if (spec_.ranks_share != RanksShare::kNothing) return kMaxSharingRanks;
  return spec_.rank_devices.empty() ? num_gpus() : static_cast<int>(spec_.rank_devices.size());
}

base::DeviceId Cluster::DeviceOf(base::Rank rank) const {
  if (rank.value() < 0 || rank.value() >= num_ranks()) {
    throw base::Error(fmt::format(
        "cluster {}: rank {} has no GPU: there is room for {} ranks\n  hint: add nodes or use a "
        "layout of at most {} ranks",
        spec_.name, rank.value(), num_ranks(), num_ranks()));
  }
  if (spec_.ranks_share != RanksShare::kNothing) return base::DeviceId{0};
  if (spec_.rank_devices.empty()) return base::DeviceId{rank.value()};
  return spec_.rank_devices[static_cast<std::size_t>(rank.value())];
}

base::DeviceId Cluster::DeviceNumbered(DeviceKind kind, int number) const {
  ISTHMUS_CHECK(number >= 0 && number < CountOf(kind), "no {} {}", NameOf(kind), number);
  return numbering_.DeviceOf(kind, number);
}

const NodeGroup& Cluster::GroupOf(const Block& block) const {
  return spec_.node_groups[static_cast<std::size_t>(block.group_index)];
}

Device Cluster::DeviceAt(base::DeviceId device) const { return numbering_.DeviceAt(device); }

std::vector<base::LinkId> Cluster::LinksFrom(base::DeviceId device) const {
  return numbering_.LinksFrom(device);
}

// Of a leaf to one spine device.
base::BytesPerSecond Cluster::UplinkBandwidth(const Block& block) const {
  const NodeGroup& group = GroupOf(block);
  const FabricSpec& fabric = spec_.fabric;
  const int nics_per_leaf = block.is_rail_optimised ? 1 : group.nics_per_node;
  const base::BytesPerSecond down =
      group.nic_bandwidth.value * static_cast<double>(block.nodes_per_leaf_group * nics_per_leaf);
  const int num_spines = fabric.num_spines.value;
  const base::BytesPerSecond to_one =
      PortsFor(down / num_spines, fabric.oversubscription.value, fabric.spine_port_bandwidth.value);
  return to_one * static_cast<double>(num_spines / numbering_.spines_per_pod());
}

// Of a spine device to one core device. Leaf groups that a pod lacks count like its last one.
base::BytesPerSecond Cluster::CoreLinkBandwidth(int pod) const {
  const CoreTier& core = *spec_.fabric.core;
  base::BytesPerSecond below{0};
  for (int index = 0; index < core.leaf_groups_per_pod.value; ++index) {
    const int wanted = pod * core.leaf_groups_per_pod.value + index;
    const Block& block = numbering_.BlockOfLeafGroup(std::min(wanted, num_leaf_groups() - 1));
    below += UplinkBandwidth(block) *
             static_cast<double>(block.leaves_per_leaf_group * numbering_.spines_per_pod());
  }
  const int num_cores = core.num_cores.value;
  const base::BytesPerSecond to_one =
      PortsFor(below / num_cores, core.oversubscription.value, core.port_bandwidth.value);
  return to_one * static_cast<double>(num_cores / CountOf(DeviceKind::kCore));
}

Link Cluster::LinkAt(base::LinkId id) const {
  const CableEnd end = numbering_.CableOf(id);
  Link link{.id = id, .kind = KindOf(end.cable)};
  if (end.cable == internal::kCustom && !numbering_.CustomCableAt(end.number).is_of_nic) {
    link.kind = LinkKind::kUplink;
  }
  std::tie(link.from, link.to) = numbering_.EndsOf(end.cable, end.number);
  if (!end.is_up) std::swap(link.from, link.to);
  std::tie(link.bandwidth, link.latency) = FiguresOf(end.cable, end.number);
  link.bandwidth = link.bandwidth * BandwidthFactorOf(end.cable, end.number);
  return link;
}

std::pair<base::BytesPerSecond, base::Seconds> Cluster::FiguresOf(Cable cable, int number) const {
  const auto figures_of = [this](const Block& block, bool is_nvlink) {
    const NodeGroup& group = GroupOf(block);
    return is_nvlink ? std::pair(group.nvlink_bandwidth.value, group.nvlink_latency.value)
                     : std::pair(group.pcie_bandwidth.value, group.pcie_latency.value);
  };
  switch (cable) {
    case internal::kGpuNvlink:
    case internal::kGpuPcie:
      return figures_of(*numbering_.PlaceOf(number).block, cable == internal::kGpuNvlink);
    case internal::kHostPcie:
    case internal::kNicPcie:
      return figures_of(numbering_.BlockOfSwitch(number), false);
    case internal::kNicLeaf: {
      const NodeGroup& group = GroupOf(numbering_.BlockOfSwitch(number));
      return {group.nic_bandwidth.value, group.nic_latency.value};
    }
    case internal::kLeafSpine:
      return {UplinkBandwidth(numbering_.BlockOfLeaf(number / numbering_.spines_per_pod())),
              spec_.fabric.hop_latency.value};
    case internal::kSpineCore: {
      const int spine = number / numbering_.cores_per_spine();
      const auto pod = static_cast<std::size_t>(spine / numbering_.spines_per_pod());
      return {core_link_bandwidths_[pod], spec_.fabric.core->hop_latency.value};
    }
    case internal::kCustom:
      return CustomFigures(numbering_.CustomCableAt(number));
    case internal::kNumCables:
      break;
  }
  ISTHMUS_CHECK(false, "no such cable {}", static_cast<int>(cable));
}

// What the cable says itself, else what holds for its ends.
std::pair<base::BytesPerSecond, base::Seconds> Cluster::CustomFigures(
    const internal::CustomCable& cable) const {
  const CableSpec& own = spec_.fabric.custom->cables[static_cast<std::size_t>(cable.spec_index)];
  base::BytesPerSecond bandwidth = spec_.fabric.spine_port_bandwidth.value;
  base::Seconds latency = spec_.fabric.hop_latency.value;
  if (cable.is_of_nic) {
    const NodeGroup& group = GroupOf(numbering_.BlockOfSwitch(cable.from));
    bandwidth = group.nic_bandwidth.value;
    latency = group.nic_latency.value;
  }
  if (!own.bandwidth.source.empty()) bandwidth = own.bandwidth.value;
  if (!own.latency.source.empty()) latency = own.latency.value;
  return {bandwidth * static_cast<double>(own.count), latency};
}

base::NodeId Cluster::NodeOf(base::DeviceId gpu) const {
  return base::NodeId{numbering_.PlaceOf(gpu.value()).node};
}

int Cluster::LocalIndexOf(base::DeviceId gpu) const {
  return numbering_.PlaceOf(gpu.value()).local;
}

const NodeGroup& Cluster::NodeGroupOf(base::DeviceId gpu) const {
  return GroupOf(*numbering_.PlaceOf(gpu.value()).block);
}

base::DeviceId Cluster::HostOf(base::DeviceId gpu) const {
  return numbering_.DeviceOf(DeviceKind::kHost, numbering_.PlaceOf(gpu.value()).node);
}

std::optional<base::DeviceId> Cluster::NicOf(base::DeviceId gpu) const {
  const GpuPlace place = numbering_.PlaceOf(gpu.value());
  if (!place.block->has_nics) return std::nullopt;
  return numbering_.DeviceOf(DeviceKind::kNic, place.pcie_switch);
}

double Cluster::SpeedFactorOf(base::DeviceId gpu) const {
  ISTHMUS_CHECK(gpu.value() >= 0 && gpu.value() < num_gpus(), "device {} is not a GPU",
                gpu.value());
  return FactorOf(speed_factors_, gpu);
}

int Cluster::NvlinkDomainOf(base::DeviceId gpu) const {
  return numbering_.PlaceOf(gpu.value()).domain;
}

bool Cluster::AreInOneNvlinkDomain(base::DeviceId a, base::DeviceId b) const {
  return NvlinkDomainOf(a) == NvlinkDomainOf(b);
}

double Cluster::BandwidthFactorOf(Cable cable, int number) const {
  if (link_factors_.empty()) return 1;
  return FactorOf(link_factors_, numbering_.UpLink(cable, number));
}

bool Cluster::IsDead(Cable cable, int number) const {
  return BandwidthFactorOf(cable, number) == 0;
}

}  // namespace isthmus::topology
