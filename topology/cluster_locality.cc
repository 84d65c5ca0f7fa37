// The locality of a group of ranks in a Cluster.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "topology/cluster.h"
#include "topology/graph.h"

namespace isthmus::topology {

using internal::GpuPlace;

namespace {

// Takes a group's GPUs in the order of their ids and adds up its locality.
class Tally {
 public:
  void AddRank(const GpuPlace& place, int pod, base::DeviceId gpu) {
    if (place.node != node_) FinishNics();
    node_ = place.node;
    if (place.domain != domain_) {
      FinishDomain();
      domain_ = place.domain;
      ++result_.num_nodes;
      result_.num_leaf_groups += place.leaf_group != leaf_group_ ? 1 : 0;
      leaf_group_ = place.leaf_group;
      num_pods_ += pod != pod_ ? 1 : 0;
      pod_ = pod;
    }
    result_.num_devices += gpu != gpu_ ? 1 : 0;
    gpu_ = gpu;
    ++result_.num_ranks;
    ++ranks_of_domain_;
  }

  void AddNic(int nic_index, base::BytesPerSecond bandwidth) {
    nics_of_node_ |= std::uint64_t{1} << nic_index;
    Lower(result_.slowest_nic, bandwidth);
  }

  void AddInNodeBandwidth(base::BytesPerSecond bandwidth) {
    Lower(result_.slowest_nvlink, bandwidth);
  }

  GroupLocality Finish(LeafWiring wiring) {
    FinishNics();
    FinishDomain();
    result_.farthest = Farthest(wiring);
    if (result_.num_nodes == 1) {  // its NICs don't matter
      result_.num_rails = 0;
      result_.min_nics_per_node = 0;
      result_.slowest_nic = base::BytesPerSecond{0};
    }
    return result_;
  }

 private:
  static void Lower(base::BytesPerSecond& least, base::BytesPerSecond candidate) {
    if (least == base::BytesPerSecond{0} || candidate < least) least = candidate;
  }

  void FinishNics() {
    nics_of_domain_ += std::popcount(nics_of_node_);
    rails_ |= nics_of_node_;
    nics_of_node_ = 0;
  }

  void FinishDomain() {
    if (ranks_of_domain_ == 0) return;
    const int ranks = ranks_of_domain_;
    const int nics = nics_of_domain_;
    const bool is_first = result_.num_nodes == 1;
    result_.min_ranks_per_node = is_first ? ranks : std::min(result_.min_ranks_per_node, ranks);
    result_.max_ranks_per_node = std::max(result_.max_ranks_per_node, ranks);
    result_.min_nics_per_node = is_first ? nics : std::min(result_.min_nics_per_node, nics);
    result_.num_rails = std::popcount(rails_);
    ranks_of_domain_ = 0;
    nics_of_domain_ = 0;
  }

  PathKind Farthest(LeafWiring wiring) const {
    if (result_.num_devices == 1) return PathKind::kSameDevice;
    if (result_.num_nodes == 1) return PathKind::kNvlink;
    if (num_pods_ > 1) return PathKind::kCore;
    if (result_.num_leaf_groups > 1) return PathKind::kSpine;
    const bool is_one_leaf = wiring == LeafWiring::kShared || result_.num_rails == 1;
    return is_one_leaf ? PathKind::kRail : PathKind::kCrossRail;
  }

  GroupLocality result_;
  int node_ = -1;
  int domain_ = -1;
  int leaf_group_ = -1;
  int pod_ = -1;
  int num_pods_ = 0;
  base::DeviceId gpu_{-1};
  int ranks_of_domain_ = 0;
  int nics_of_domain_ = 0;
  std::uint64_t nics_of_node_ = 0;
  std::uint64_t rails_ = 0;
};

}  // namespace

// The least of the routes to the spine switches of the GPU's pod, or to the switches of a custom
// fabric.
std::optional<Route> Cluster::RouteToSpines(base::DeviceId gpu, const ClusterGraph& graph) const {
  DeviceKind kind = DeviceKind::kSwitch;
  int first = 0;
  int count = CountOf(kind);
  if (!numbering_.is_custom()) {
    kind = DeviceKind::kSpine;
    count = numbering_.spines_per_pod();
    first = count * numbering_.PodOfLeafGroup(numbering_.PlaceOf(gpu.value()).leaf_group);
  }
  std::optional<Route> least;
  for (int number = first; number < first + count; ++number) {
    std::optional<Route> route = graph.Shortest(gpu, numbering_.DeviceOf(kind, number));
    if (route && (!least || route->Latency() < least->Latency())) least = std::move(route);
  }
  return least;
}

// Whether no link of a NIC is alive, or none from its leaf on where that is needed.
bool Cluster::HasDeadNic(int nic, bool leaves_leaf_group) const {
  if (numbering_.is_custom()) {
    const std::vector<base::LinkId>& links = numbering_.CustomLinksOfNic(nic);
    return std::ranges::all_of(links, [this](base::LinkId id) { return LinkAt(id).is_dead(); });
  }
  if (IsDead(internal::kNicLeaf, nic)) return true;
  const int leaf = numbering_.LeafOfNic(nic);
  for (int spine = 0; leaves_leaf_group && spine < numbering_.spines_per_pod(); ++spine) {
    if (!IsDead(internal::kLeafSpine, numbering_.UplinkOf(leaf, spine))) return false;
  }
  return leaves_leaf_group;
}

// The GPU's own NIC unless the way to it or beyond is dead; then the one on the way to a spine.
Cluster::NicUse Cluster::UseOfNic(base::DeviceId gpu, const GpuPlace& place,
                                  bool leaves_leaf_group) const {
  const bool is_cut_off =
      !link_factors_.empty() &&
      (IsDead(internal::kGpuPcie, gpu.value()) || HasDeadNic(place.pcie_switch, leaves_leaf_group));
  if (!is_cut_off) {
    return {place.pcie_switch, GroupOf(*place.block).pcie_bandwidth.value *
                                   BandwidthFactorOf(internal::kGpuPcie, gpu.value())};
  }
  const ClusterGraph graph = ClusterGraph::OfDomainsOf(*this, gpu, gpu);
  const std::optional<Route> route = RouteToSpines(gpu, graph);
  if (!route) ThrowCutOff(gpu, gpu, graph);
  base::BytesPerSecond to_nic = route->links.front().bandwidth;
  for (const Link& link : route->links) {
    if (link.kind == LinkKind::kNic) return {numbering_.NumberOf(link.from), to_nic};
    to_nic = std::min(to_nic, link.bandwidth);
  }
  ISTHMUS_CHECK(false, "a route from GPU {} to a spine has no NIC", gpu.value());
}

std::optional<base::DeviceId> Cluster::UsedNicOf(base::DeviceId gpu, bool leaves_leaf_group) const {
  const GpuPlace place = numbering_.PlaceOf(gpu.value());
  if (!place.block->has_nics) return std::nullopt;
  return numbering_.DeviceOf(DeviceKind::kNic, UseOfNic(gpu, place, leaves_leaf_group).nic);
}

// Of the GPU's NVLink, or of the detour to its neighbour if that is dead; absent for a GPU that is
// alone in its NVLink domain.
std::optional<base::BytesPerSecond> Cluster::BandwidthInNode(base::DeviceId gpu,
                                                             const GpuPlace& place) const {
  if (!place.block->has_nvlink) return std::nullopt;
  const double factor = BandwidthFactorOf(internal::kGpuNvlink, gpu.value());
  if (factor > 0) return GroupOf(*place.block).nvlink_bandwidth.value * factor;
  const base::DeviceId neighbour = numbering_.NextInDomain(gpu);
  if (neighbour == gpu) return std::nullopt;
  return RouteBetween(gpu, neighbour).Bandwidth();
}

// What is left of a NIC's, in a custom fabric of all of its cables.
base::BytesPerSecond Cluster::NicBandwidth(int nic) const {
  if (!numbering_.is_custom()) {
    return GroupOf(numbering_.BlockOfSwitch(nic)).nic_bandwidth.value *
           BandwidthFactorOf(internal::kNicLeaf, nic);
  }
  base::BytesPerSecond sum{0};
  for (const base::LinkId id : numbering_.CustomLinksOfNic(nic)) sum += LinkAt(id).bandwidth;
  return sum;
}

GroupLocality Cluster::LocalityInOrder(std::span<const base::Rank> ranks) const {
  const auto leaf_group_of = [this](base::Rank rank) {
    return numbering_.PlaceOf(DeviceOf(rank).value()).leaf_group;
  };
  const bool leaves_leaf_group = leaf_group_of(ranks.front()) != leaf_group_of(ranks.back());
  Tally tally;
  for (const base::Rank rank : ranks) {
    const base::DeviceId gpu = DeviceOf(rank);
    const GpuPlace place = numbering_.PlaceOf(gpu.value());
    tally.AddRank(place, numbering_.PodOfLeafGroup(place.leaf_group), gpu);
    if (const auto in_node = BandwidthInNode(gpu, place)) tally.AddInNodeBandwidth(*in_node);
    if (!place.block->has_nics) continue;
    const NicUse use = UseOfNic(gpu, place, leaves_leaf_group);
    tally.AddNic((use.nic - place.block->first_switch) % place.block->switches_per_node,
                 std::min(use.to_nic, NicBandwidth(use.nic)));
  }
  GroupLocality locality = tally.Finish(spec_.fabric.wiring);
  if (numbering_.is_custom() && locality.num_nodes > 1) {
    locality.farthest = HasOneSwitch(ranks) ? PathKind::kRail : PathKind::kSpine;
  }
  return locality;
}

GroupLocality Cluster::Locality(std::span<const base::Rank> ranks) const {
  ISTHMUS_CHECK(!ranks.empty(), "a group has at least one rank");
  const auto is_before = [this](base::Rank a, base::Rank b) { return DeviceOf(a) < DeviceOf(b); };
  if (std::is_sorted(ranks.begin(), ranks.end(), is_before)) return LocalityInOrder(ranks);
  std::vector<base::Rank> in_order(ranks.begin(), ranks.end());
  std::sort(in_order.begin(), in_order.end(), is_before);
  return LocalityInOrder(in_order);
}

}  // namespace isthmus::topology
