// The routes of a Cluster. What they minimise: route.h, RoutingCost.

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "topology/cluster.h"
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
  const Link uplink = LinkAt(numbering_.UpLink(internal::kLeafSpine, from.block->first_leaf));
  return RoutingCost(nvlink) <= RoutingCost(uplink);
}

Route Cluster::UsualRoute(base::DeviceId from, base::DeviceId to) const {
  const GpuPlace source = numbering_.PlaceOf(from.value());
  const GpuPlace target = numbering_.PlaceOf(to.value());
  Steps steps(numbering_);
  if (source.node == target.node) {
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
  steps.Up(internal::kNicLeaf, exit.pcie_switch);
  const int exit_leaf = numbering_.LeafOfNic(exit.pcie_switch);
  const int entry_leaf = numbering_.LeafOfNic(target.pcie_switch);
  if (exit_leaf != entry_leaf) {
    steps.Up(internal::kLeafSpine, exit_leaf);
    steps.Down(internal::kLeafSpine, entry_leaf);
  }
  steps.Down(internal::kNicLeaf, target.pcie_switch);
  steps.Down(internal::kNicPcie, target.pcie_switch);
  steps.Down(internal::kGpuPcie, to.value());
  return RouteOver(from, to, steps.links());
}

std::optional<Route> Cluster::FindRoute(base::DeviceId from, base::DeviceId to) const {
  Route usual = UsualRoute(from, to);
  if (link_factors_.empty() || !usual.CrossesDeadLink()) return usual;
  return ClusterGraph::OfNodesOf(*this, from, to).Shortest(from, to);
}

Route Cluster::RouteBetween(base::DeviceId from, base::DeviceId to) const {
  std::optional<Route> route = FindRoute(from, to);
  if (!route) ThrowCutOff(from, fmt::format("GPU {}", to.value()));
  return *std::move(route);
}

void Cluster::ThrowCutOff(base::DeviceId gpu, const std::string& from_what) const {
  throw base::Error(
      fmt::format("cluster {}: dead links cut GPU {} off from {}\n  hint: give one of them a "
                  "bandwidth_factor above 0, or don't use the node",
                  spec_.name, gpu.value(), from_what));
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
