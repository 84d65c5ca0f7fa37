#include "topology/oversubscription.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "topology/internal/picture_parts.h"

namespace isthmus::topology {
namespace {

Cluster WithoutFaults(ClusterSpec spec) {
  spec.link_faults.clear();
  return Cluster(std::move(spec));
}

base::BytesPerSecond SumOf(const Cluster& cluster, base::DeviceId device, LinkKind kind) {
  base::BytesPerSecond sum{0};
  for (const base::LinkId id : cluster.LinksFrom(device)) {
    const Link link = cluster.LinkAt(id);
    if (link.kind == kind) sum += link.bandwidth;
  }
  return sum;
}

// How many leaf switches serve the NICs of a node.
int LeavesOfNode(const Cluster& cluster, const NodeGroup& group) {
  const bool is_rail_optimised = cluster.spec().fabric.wiring == LeafWiring::kRailOptimised;
  return is_rail_optimised ? group.nics_per_node : std::min(group.nics_per_node, 1);
}

// Of each node group.
std::vector<SwitchBandwidth> LeafOfEachGroup(const Cluster& sound) {
  const FabricSpec& fabric = sound.spec().fabric;
  std::vector<SwitchBandwidth> leaves;
  int nic = 0;
  for (const NodeGroup& group : sound.spec().node_groups) {
    SwitchBandwidth& leaf = leaves.emplace_back();
    leaf.asked = fabric.oversubscription.value;
    leaf.where = group.name;
    if (group.nics_per_node == 0) continue;
    const int nics_of_leaf = group.nics_per_node / LeavesOfNode(sound, group);
    leaf.down = group.nic_bandwidth.value *
                static_cast<double>(fabric.nodes_per_leaf_group.value * nics_of_leaf);
    const base::LinkId to_leaf =
        sound.LinksFrom(sound.DeviceNumbered(DeviceKind::kNic, nic)).back();
    leaf.up = SumOf(sound, sound.LinkAt(to_leaf).to, LinkKind::kUplink);
    nic += group.num_nodes * group.nics_per_node;
  }
  return leaves;
}

// Each bandwidth once, with the places that have it.
template <typename Where>
std::vector<std::pair<SwitchBandwidth, std::vector<Where>>> Distinct(
    const std::vector<SwitchBandwidth>& all, const std::vector<Where>& places) {
  std::vector<std::pair<SwitchBandwidth, std::vector<Where>>> distinct;
  for (std::size_t index = 0; index < all.size(); ++index) {
    const auto known = std::ranges::find_if(distinct, [&](const auto& entry) {
      return entry.first.down == all[index].down && entry.first.up == all[index].up;
    });
    if (known == distinct.end()) {
      distinct.push_back({all[index], {places[index]}});
    } else {
      known->second.push_back(places[index]);
    }
  }
  return distinct;
}

}  // namespace

std::vector<SwitchBandwidth> LeafBandwidths(const Cluster& cluster) {
  if (cluster.CountOf(DeviceKind::kLeaf) == 0) return {};
  std::vector<SwitchBandwidth> all = LeafOfEachGroup(WithoutFaults(cluster.spec()));
  std::erase_if(all, [](const SwitchBandwidth& leaf) { return leaf.up.value() == 0; });
  std::vector<std::string> names;
  for (const SwitchBandwidth& leaf : all) names.push_back(leaf.where);
  std::vector<SwitchBandwidth> leaves;
  const auto distinct = Distinct(all, names);
  for (const auto& [leaf, groups] : distinct) {
    leaves.push_back(leaf);
    leaves.back().where = distinct.size() == 1 ? "" : fmt::format("in {}", fmt::join(groups, ", "));
  }
  return leaves;
}

std::vector<SwitchBandwidth> SpineBandwidths(const Cluster& cluster) {
  if (cluster.CountOf(DeviceKind::kCore) == 0) return {};
  const Cluster sound = WithoutFaults(cluster.spec());
  const FabricSpec& fabric = sound.spec().fabric;
  const std::vector<internal::LeafGroupPart> groups = internal::LeafGroupsOf(sound);
  const std::vector<SwitchBandwidth> leaves = LeafOfEachGroup(sound);
  const int devices_of_pod = sound.CountOf(DeviceKind::kSpine) / sound.num_pods();
  std::vector<SwitchBandwidth> all;
  std::vector<int> pods;
  for (int pod = 0; pod < sound.num_pods(); ++pod) {
    SwitchBandwidth spine{.asked = fabric.core->oversubscription.value};
    const base::DeviceId device = sound.DeviceNumbered(DeviceKind::kSpine, pod * devices_of_pod);
    // Without ECMP the device is all spine switches of the pod.
    spine.up = SumOf(sound, device, LinkKind::kCore) *
               (static_cast<double>(devices_of_pod) / fabric.num_spines.value);
    const int per_pod = fabric.core->leaf_groups_per_pod.value;
    for (int index = 0; index < per_pod; ++index) {
      // Leaf groups that a pod lacks count like its last one, as its ports do.
      const int number = std::min(pod * per_pod + index, sound.num_leaf_groups() - 1);
      const auto group =
          static_cast<std::size_t>(groups[static_cast<std::size_t>(number)].node_group);
      const int num_leaves = LeavesOfNode(sound, sound.spec().node_groups[group]);
      spine.down += leaves[group].up * (static_cast<double>(num_leaves) / fabric.num_spines.value);
    }
    all.push_back(spine);
    pods.push_back(pod);
  }
  std::vector<SwitchBandwidth> spines;
  const auto distinct = Distinct(all, pods);
  for (const auto& [spine, alike] : distinct) {
    spines.push_back(spine);
    spines.back().where = distinct.size() == 1
                              ? ""
                              : fmt::format("in {} {}", alike.size() == 1 ? "pod" : "pods",
                                            base::FormatRanges(alike));
  }
  return spines;
}

std::string DescribeOversubscription(const std::vector<SwitchBandwidth>& layer) {
  std::string asked = fmt::format("{:.4g} : 1", layer.front().asked);
  constexpr double kPrinted = 1e-4;
  if (std::ranges::all_of(layer, [](const auto& of) { return of.IsAsAsked(kPrinted); })) {
    return asked;
  }
  const double first = layer.front().built();
  const bool is_one_ratio = std::ranges::all_of(
      layer, [first](const auto& of) { return std::abs(of.built() / first - 1) < kPrinted; });
  std::vector<std::string> built;
  for (const SwitchBandwidth& of_switch : layer) {
    const bool is_named = !is_one_ratio && !of_switch.where.empty();
    built.push_back(fmt::format("{:.4g} : 1{}{}", of_switch.built(), is_named ? " " : "",
                                is_named ? of_switch.where : ""));
    if (is_one_ratio) break;
  }
  return fmt::format("{} asked, {} with whole ports", asked, fmt::join(built, ", "));
}

}  // namespace isthmus::topology
