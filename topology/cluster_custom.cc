// Routes through a custom fabric: of least cost between any NICs of the two NVLink domains, the
// switches between two NICs drawn among paths of equal cost, hop by hop.

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "topology/cluster.h"

namespace isthmus::topology {

using internal::GpuPlace;
using internal::SwitchPaths;

SwitchPaths Cluster::LivePaths() const {
  std::vector<SwitchPaths::Edge> edges;
  for (int number = 0; number < numbering_.num_custom_cables(); ++number) {
    const internal::CustomCable& cable = numbering_.CustomCableAt(number);
    if (cable.is_of_nic || IsDead(internal::kCustom, number)) continue;
    const Link link = LinkAt(numbering_.UpLink(internal::kCustom, number));
    edges.push_back({cable.from, cable.to, RoutingCost(link)});
  }
  return SwitchPaths(CountOf(DeviceKind::kSwitch), edges);
}

// From a switch to a NIC.
std::int64_t Cluster::CostToNic(int from_switch, int nic) const {
  std::int64_t least = SwitchPaths::kNone;
  for (const base::LinkId id : numbering_.CustomLinksOfNic(nic)) {
    const Link link = LinkAt(id);
    if (link.is_dead()) continue;
    const std::int64_t between =
        switch_paths_.CostBetween(from_switch, numbering_.NumberOf(link.to));
    if (between < SwitchPaths::kNone) least = std::min(least, between + RoutingCost(link));
  }
  return least;
}

std::int64_t Cluster::CustomCost(int exit_nic, int entry_nic) const {
  std::int64_t least = SwitchPaths::kNone;
  for (const base::LinkId id : numbering_.CustomLinksOfNic(exit_nic)) {
    const Link link = LinkAt(id);
    if (link.is_dead()) continue;
    const std::int64_t rest = CostToNic(numbering_.NumberOf(link.to), entry_nic);
    if (rest < SwitchPaths::kNone) least = std::min(least, rest + RoutingCost(link));
  }
  return least;
}

std::vector<base::LinkId> Cluster::CustomPath(int exit_nic, int entry_nic) const {
  std::vector<base::LinkId> path;
  std::int64_t left = CustomCost(exit_nic, entry_nic);
  if (left == SwitchPaths::kNone) return path;
  const base::DeviceId end = numbering_.DeviceOf(DeviceKind::kNic, entry_nic);
  const std::vector<base::LinkId>* here = &numbering_.CustomLinksOfNic(exit_nic);
  while (left > 0) {
    std::vector<std::pair<Link, std::int64_t>> equal;  // and what is left behind it
    for (const base::LinkId id : *here) {
      const Link link = LinkAt(id);
      const bool is_to_switch = numbering_.KindOf(link.to) == DeviceKind::kSwitch;
      if (link.is_dead() || (!is_to_switch && link.to != end)) continue;
      const std::int64_t rest =
          is_to_switch ? CostToNic(numbering_.NumberOf(link.to), entry_nic) : 0;
      if (RoutingCost(link) + rest == left) equal.emplace_back(link, rest);
    }
    const auto hop = static_cast<int>(path.size());
    const std::size_t drawn =
        equal.size() == 1 ? 0 : DrawFor(exit_nic, entry_nic, hop) % equal.size();
    path.push_back(equal[drawn].first.id);
    left = equal[drawn].second;
    if (left > 0) here = &numbering_.LinksOfSwitch(numbering_.NumberOf(equal[drawn].first.to));
  }
  return path;
}

namespace {

// One GPU for each NIC of its NVLink domain, itself for its own and in front.
std::vector<GpuPlace> GpusByNic(const internal::Numbering& numbering, base::DeviceId gpu) {
  std::vector<GpuPlace> places = {numbering.PlaceOf(gpu.value())};
  std::set<int> nics = {places.front().pcie_switch};
  if (!places.front().block->has_nvlink) return places;
  const auto [first, count] = numbering.GpusOfDomain(places.front().domain);
  for (int other = first; other < first + count; ++other) {
    const GpuPlace place = numbering.PlaceOf(other);
    if (nics.insert(place.pcie_switch).second) places.push_back(place);
  }
  return places;
}

}  // namespace

std::optional<Route> Cluster::CustomRoute(base::DeviceId from, base::DeviceId to) const {
  const std::vector<GpuPlace> exits = GpusByNic(numbering_, from);
  const std::vector<GpuPlace> entries = GpusByNic(numbering_, to);
  // Of the way over NVLink to or from another GPU.
  const auto turn_of = [this](const std::vector<GpuPlace>& places, const GpuPlace& place) {
    if (&place == &places.front()) return std::int64_t{0};
    return 2 * RoutingCost(LinkAt(numbering_.UpLink(internal::kGpuNvlink, place.block->first_gpu)));
  };
  std::int64_t least = SwitchPaths::kNone;
  const GpuPlace* exit = nullptr;
  const GpuPlace* entry = nullptr;
  for (const GpuPlace& out : exits) {
    for (const GpuPlace& in : entries) {
      const std::int64_t cost =
          turn_of(exits, out) + turn_of(entries, in) + CustomCost(out.pcie_switch, in.pcie_switch);
      if (cost >= least) continue;
      least = cost;
      exit = &out;
      entry = &in;
    }
  }
  if (exit == nullptr) return std::nullopt;
  std::vector<base::LinkId> links;
  const int exit_gpu = exit->block->GpuOf(exit->node, exit->local);
  const int entry_gpu = entry->block->GpuOf(entry->node, entry->local);
  if (exit_gpu != from.value()) {
    links.push_back(numbering_.UpLink(internal::kGpuNvlink, from.value()));
    links.push_back(numbering_.DownLink(internal::kGpuNvlink, exit_gpu));
  }
  links.push_back(numbering_.UpLink(internal::kGpuPcie, exit_gpu));
  links.push_back(numbering_.UpLink(internal::kNicPcie, exit->pcie_switch));
  for (const base::LinkId id : CustomPath(exit->pcie_switch, entry->pcie_switch)) {
    links.push_back(id);
  }
  links.push_back(numbering_.DownLink(internal::kNicPcie, entry->pcie_switch));
  links.push_back(numbering_.DownLink(internal::kGpuPcie, entry_gpu));
  if (entry_gpu != to.value()) {
    links.push_back(numbering_.UpLink(internal::kGpuNvlink, entry_gpu));
    links.push_back(numbering_.DownLink(internal::kGpuNvlink, to.value()));
  }
  return RouteOver(from, to, links);
}

// Whether the ranks' own NICs meet at one switch.
bool Cluster::HasOneSwitch(std::span<const base::Rank> ranks) const {
  std::set<int> switches;
  for (const base::Rank rank : ranks) {
    const GpuPlace place = numbering_.PlaceOf(DeviceOf(rank).value());
    for (const base::LinkId id : numbering_.CustomLinksOfNic(place.pcie_switch)) {
      switches.insert(numbering_.NumberOf(LinkAt(id).to));
    }
  }
  return switches.size() == 1;
}

}  // namespace isthmus::topology
