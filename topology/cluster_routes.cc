// The routes of a Cluster. What they minimise: route.h, RoutingCost.

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/hash.h"
#include "topology/cluster.h"
#include "topology/describe.h"
#include "topology/graph.h"

namespace isthmus::topology {

using internal::GpuPlace;
using internal::Numbering;

namespace {

// Puts links one after another, as a transfer crosses them.
class Steps {
 public:
  explicit Steps(const Numbering& numbering) : numbering_(numbering) {}

  void Up(internal::Cable cable, int number) { links_.push_back(numbering_.UpLink(cable, number)); }
  void Down(internal::Cable cable, int number) {
    links_.push_back(numbering_.DownLink(cable, number));
  }
  void CrossNvlink(int from_gpu, int to_gpu) {
    Up(internal::kGpuNvlink, from_gpu);
    Down(internal::kGpuNvlink, to_gpu);
  }
  void Append(const std::vector<base::LinkId>& links) {
    links_.insert(links_.end(), links.begin(), links.end());
  }
  const std::vector<base::LinkId>& links() const { return links_; }

 private:
  const Numbering& numbering_;
  std::vector<base::LinkId> links_;
};

}  // namespace

Route Cluster::RouteOver(base::DeviceId from, base::DeviceId to,
                         std::span<const base::LinkId> links) const {
  Route route{.from = from, .to = to, .links = {}};
  route.links.reserve(links.size());
  for (const base::LinkId link : links) route.links.push_back(LinkAt(link));
  return route;
}

// Two ways lead from rail to rail inside a leaf group: NVLink to the GPU that has a NIC on the
// other rail, or the spine. NCCL calls the first PXN.
bool Cluster::TurnsToOtherRail(const GpuPlace& from, const GpuPlace& to) const {
  const bool is_cross_rail = from.block->is_rail_optimised && from.leaf_group == to.leaf_group &&
                             from.nic_index() != to.nic_index();
  if (!is_cross_rail) return false;
  const Link nvlink = LinkAt(numbering_.UpLink(internal::kGpuNvlink, from.block->first_gpu));
  const int uplink_number = numbering_.UplinkOf(from.block->first_leaf, 0);
  const Link uplink = LinkAt(numbering_.UpLink(internal::kLeafSpine, uplink_number));
  return RoutingCost(nvlink) <= RoutingCost(uplink);
}

std::vector<base::LinkId> Cluster::PathNumbered(int number, int exit_leaf, int entry_leaf) const {
  const int spine = number % numbering_.spines_per_pod();
  const int core = number / numbering_.spines_per_pod();
  const int exit_pod = numbering_.PodOfLeaf(exit_leaf);
  const int entry_pod = numbering_.PodOfLeaf(entry_leaf);
  Steps steps(numbering_);
  steps.Up(internal::kLeafSpine, numbering_.UplinkOf(exit_leaf, spine));
  if (exit_pod != entry_pod) {
    steps.Up(internal::kSpineCore, numbering_.CoreLinkOf(exit_pod, spine, core));
    steps.Down(internal::kSpineCore, numbering_.CoreLinkOf(entry_pod, spine, core));
  }
  steps.Down(internal::kLeafSpine, numbering_.UplinkOf(entry_leaf, spine));
  return steps.links();
}

std::uint64_t Cluster::DrawFor(int exit_nic, int entry_nic, int attempt) const {
  base::HashBuilder hash(spec_.fabric.ecmp ? spec_.fabric.ecmp->seed : 0);
  return hash.Add(exit_nic).Add(entry_nic).Add(attempt).digest();
}

// Of the paths of equal cost between two NICs the one that hashing the pair gives; if that is dead,
// hashing once more gives one of the live ones.
int Cluster::DrawnPath(int exit_nic, int entry_nic) const {
  const int exit_leaf = numbering_.LeafOfNic(exit_nic);
  const int entry_leaf = numbering_.LeafOfNic(entry_nic);
  const bool is_in_pod = numbering_.PodOfLeaf(exit_leaf) == numbering_.PodOfLeaf(entry_leaf);
  const int num_paths =
      numbering_.spines_per_pod() * (is_in_pod ? 1 : numbering_.cores_per_spine());
  if (num_paths == 1) return 0;
  const auto draw = [this, exit_nic, entry_nic](int attempt, std::size_t count) {
    return DrawFor(exit_nic, entry_nic, attempt) % count;
  };
  const auto is_live = [this, exit_leaf, entry_leaf](int number) {
    const std::vector<base::LinkId> links = PathNumbered(number, exit_leaf, entry_leaf);
    return std::ranges::none_of(links, [this](base::LinkId id) { return LinkAt(id).is_dead(); });
  };
  const auto drawn = static_cast<int>(draw(0, static_cast<std::size_t>(num_paths)));
  if (link_factors_.empty() || is_live(drawn)) return drawn;
  std::vector<int> live;
  for (int number = 0; number < num_paths; ++number) {
    if (is_live(number)) live.push_back(number);
  }
  return live.empty() ? drawn : live[draw(1, live.size())];
}

std::vector<base::LinkId> Cluster::FabricPath(int exit_nic, int entry_nic) const {
  if (numbering_.is_custom()) return CustomPath(exit_nic, entry_nic);
  const int exit_leaf = numbering_.LeafOfNic(exit_nic);
  const int entry_leaf = numbering_.LeafOfNic(entry_nic);
  Steps steps(numbering_);
  steps.Up(internal::kNicLeaf, exit_nic);
  if (exit_leaf != entry_leaf) {
    steps.Append(PathNumbered(DrawnPath(exit_nic, entry_nic), exit_leaf, entry_leaf));
  }
  steps.Down(internal::kNicLeaf, entry_nic);
  return steps.links();
}

Route Cluster::UsualRoute(base::DeviceId from, base::DeviceId to) const {
  const GpuPlace source = numbering_.PlaceOf(from.value());
  const GpuPlace target = numbering_.PlaceOf(to.value());
  Steps steps(numbering_);
  if (source.domain == target.domain) {
    if (from != to) steps.CrossNvlink(from.value(), to.value());
    return RouteOver(from, to, steps.links());
  }
  GpuPlace exit = source;
  int exit_gpu = from.value();
  if (TurnsToOtherRail(source, target)) {
    const int exit_local = target.nic_index() * source.block->gpus_per_switch;
    exit_gpu = from.value() - source.local + exit_local;
    exit = numbering_.PlaceOf(exit_gpu);
    steps.CrossNvlink(from.value(), exit_gpu);
  }
  steps.Up(internal::kGpuPcie, exit_gpu);
  steps.Up(internal::kNicPcie, exit.pcie_switch);
  steps.Append(FabricPath(exit.pcie_switch, target.pcie_switch));
  steps.Down(internal::kNicPcie, target.pcie_switch);
  steps.Down(internal::kGpuPcie, to.value());
  return RouteOver(from, to, steps.links());
}

// A search finds the same switches for all; this draws them as for any other route.
Route Cluster::OverDrawnSwitches(Route route) const {
  const auto is_nic_cable = [](const Link& link) { return link.kind == LinkKind::kNic; };
  const bool are_drawn = spec_.fabric.ecmp || numbering_.is_custom();
  if (!are_drawn || std::ranges::count_if(route.links, is_nic_cable) != 2) return route;
  const auto exit = std::ranges::find_if(route.links, is_nic_cable);
  const auto entry = std::find_if(exit + 1, route.links.end(), is_nic_cable);
  Steps steps(numbering_);
  for (auto link = route.links.begin(); link != exit; ++link) steps.Append({link->id});
  steps.Append(FabricPath(numbering_.NumberOf(exit->from), numbering_.NumberOf(entry->to)));
  for (auto link = entry + 1; link != route.links.end(); ++link) steps.Append({link->id});
  return RouteOver(route.from, route.to, steps.links());
}

std::optional<Route> Cluster::FindRoute(base::DeviceId from, base::DeviceId to) const {
  const bool is_over_custom = numbering_.is_custom() && !AreInOneNvlinkDomain(from, to);
  std::optional<Route> usual = is_over_custom ? CustomRoute(from, to) : UsualRoute(from, to);
  if (usual && (link_factors_.empty() || !usual->CrossesDeadLink())) return usual;
  std::optional<Route> found = ClusterGraph::OfDomainsOf(*this, from, to).Shortest(from, to);
  if (found) found = OverDrawnSwitches(*std::move(found));
  return found;
}

Route Cluster::RouteBetween(base::DeviceId from, base::DeviceId to) const {
  std::optional<Route> route = FindRoute(from, to);
  if (!route) ThrowCutOff(from, to, ClusterGraph::OfDomainsOf(*this, from, to));
  return *std::move(route);
}

std::optional<RouteTraits> Cluster::TraitsOfRoute(base::DeviceId from, base::DeviceId to) const {
  if (!link_factors_.empty() || numbering_.is_custom()) return std::nullopt;
  const GpuPlace source = numbering_.PlaceOf(from.value());
  const GpuPlace target = numbering_.PlaceOf(to.value());
  RouteTraits traits{.from_group = source.block->group_index,
                     .to_group = target.block->group_index};
  if (source.domain == target.domain) {
    if (from != to) traits.distance = PathKind::kNvlink;
    return traits;
  }
  if (source.leaf_group == target.leaf_group) {
    const bool is_one_leaf =
        !source.block->is_rail_optimised || source.nic_index() == target.nic_index();
    traits.distance = is_one_leaf ? PathKind::kRail : PathKind::kCrossRail;
    return traits;
  }
  traits.distance = PathKind::kSpine;
  const int from_pod = numbering_.PodOfLeafGroup(source.leaf_group);
  const int to_pod = numbering_.PodOfLeafGroup(target.leaf_group);
  if (from_pod != to_pod) {
    traits.distance = PathKind::kCore;
    traits.from_pod = from_pod;
    traits.to_pod = to_pod;
  }
  return traits;
}

void Cluster::ThrowCutOff(base::DeviceId gpu, base::DeviceId to, const ClusterGraph& graph) const {
  std::vector<std::string> cut;
  for (const Link& link : graph.DeadLinksBetween(gpu, to)) {
    cut.push_back(fmt::format("{} -> {}", LabelOf(*this, link.from), LabelOf(*this, link.to)));
  }
  const std::string other = gpu == to ? "the other nodes" : fmt::format("GPU {}", to.value());
  if (cut.empty()) {
    throw base::Error(
        fmt::format("cluster {}: no cables lead from GPU {} to {}\n  hint: add the "
                    "missing ones to fabric.custom.cables",
                    spec_.name, gpu.value(), other));
  }
  throw base::Error(
      fmt::format("cluster {}: dead links cut GPU {} off from {}: {}\n  hint: give one of them a "
                  "bandwidth_factor above 0, or don't use the node",
                  spec_.name, gpu.value(), other, fmt::join(cut, ", ")));
}

Route Cluster::RouteToHost(base::DeviceId gpu) const {
  const GpuPlace place = numbering_.PlaceOf(gpu.value());
  Steps steps(numbering_);
  steps.Up(internal::kGpuPcie, gpu.value());
  steps.Up(internal::kHostPcie, place.pcie_switch);
  return CheckedCopyRoute(RouteOver(gpu, HostOf(gpu), steps.links()), gpu);
}

Route Cluster::RouteFromHost(base::DeviceId gpu) const {
  const GpuPlace place = numbering_.PlaceOf(gpu.value());
  Steps steps(numbering_);
  steps.Down(internal::kHostPcie, place.pcie_switch);
  steps.Down(internal::kGpuPcie, gpu.value());
  return CheckedCopyRoute(RouteOver(HostOf(gpu), gpu, steps.links()), gpu);
}

Route Cluster::CheckedCopyRoute(Route route, base::DeviceId gpu) const {
  if (route.CrossesDeadLink()) {
    throw base::Error(
        fmt::format("cluster {}: the dead PCIe link of GPU {} leaves no way to its host's memory\n"
                    "  hint: turn offload off on this GPU, or give the link a bandwidth_factor",
                    spec_.name, gpu.value()));
  }
  return route;
}

}  // namespace isthmus::topology
