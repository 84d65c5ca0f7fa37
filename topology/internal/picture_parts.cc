#include "topology/internal/picture_parts.h"

#include <algorithm>

namespace isthmus::topology::internal {
namespace {

constexpr int kDrawnWhole = 3;
constexpr int kMostTouched = 4;

// What of a run is drawn, in its order.
std::vector<int> DrawnOfRun(int first, int last, const std::function<bool(int)>& is_touched) {
  std::vector<int> drawn;
  int touched = 0;
  for (int index = first; index < last; ++index) {
    const bool is_marked = touched < kMostTouched && is_touched(index);
    touched += is_marked ? 1 : 0;
    // What is alone between two that are drawn is drawn too.
    const bool is_last_gap = !drawn.empty() && is_marked && index - drawn.back() == 2;
    if (is_last_gap) drawn.push_back(index - 1);
    if (is_marked || index == first || last - first <= kDrawnWhole) drawn.push_back(index);
  }
  if (last - drawn.back() == 2) drawn.push_back(last - 1);
  return drawn;
}

void ChooseOfRun(int first, int last, const std::function<bool(int)>& is_touched,
                 std::vector<Shown>& shown) {
  const auto count_between = [&](int begin, int end) {
    if (begin == end) return;
    bool has_touched = false;
    for (int index = begin; index < end; ++index) has_touched |= is_touched(index);
    shown.push_back({begin, end - begin, has_touched});
  };
  int next = first;
  for (const int index : DrawnOfRun(first, last, is_touched)) {
    count_between(next, index);
    shown.push_back({index});
    next = index + 1;
  }
  count_between(next, last);
}

}  // namespace

std::vector<LeafGroupPart> LeafGroupsOf(const Cluster& cluster) {
  const ClusterSpec& spec = cluster.spec();
  std::vector<LeafGroupPart> parts;
  int first_node = 0;
  for (int index = 0; index < static_cast<int>(spec.node_groups.size()); ++index) {
    const NodeGroup& group = spec.node_groups[static_cast<std::size_t>(index)];
    const bool has_leaves = group.nics_per_node > 0 && !spec.fabric.custom;
    const int size = has_leaves ? spec.fabric.nodes_per_leaf_group.value : group.num_nodes;
    for (int node = 0; node < group.num_nodes; node += size) {
      parts.push_back({index, first_node + node, std::min(size, group.num_nodes - node)});
    }
    first_node += group.num_nodes;
  }
  return parts;
}

TouchedParts TouchedBy(const Cluster& cluster) {
  TouchedParts touched;
  std::set<int> nodes_of_leaf_groups;
  std::set<int> nodes_of_spines;
  for (const LinkFault& fault : cluster.spec().link_faults) {
    const int node = fault.node.value();
    switch (fault.part) {
      case FaultyPart::kNvlink:
      case FaultyPart::kPcie:
      case FaultyPart::kNic:
        touched.nodes.insert(node);
        break;
      case FaultyPart::kUplink:
        nodes_of_leaf_groups.insert(node);
        break;
      case FaultyPart::kCoreLink:
      case FaultyPart::kSpine:
        nodes_of_spines.insert(node);
        break;
      case FaultyPart::kCore:
        touched.cores.insert(fault.index);
        break;
      case FaultyPart::kCable:
      case FaultyPart::kSwitch:
        break;
    }
  }
  for (const SlowGpu& slow : cluster.spec().slow_gpus) {
    touched.nodes.insert(cluster.NodeOf(slow.device).value());
  }
  const std::vector<LeafGroupPart> leaf_groups = LeafGroupsOf(cluster);
  const auto leaf_group_of = [&leaf_groups](int node) {
    const auto next = std::ranges::upper_bound(leaf_groups, node, {}, &LeafGroupPart::first_node);
    return static_cast<int>(next - leaf_groups.begin()) - 1;
  };
  for (const int node : touched.nodes) touched.leaf_groups.insert(leaf_group_of(node));
  for (const int node : nodes_of_leaf_groups) touched.leaf_groups.insert(leaf_group_of(node));
  for (const int node : nodes_of_spines) {
    touched.pods.insert(cluster.PodOfLeafGroup(leaf_group_of(node)));
  }
  for (const int group : touched.leaf_groups) touched.pods.insert(cluster.PodOfLeafGroup(group));
  for (const LinkFault& fault : cluster.spec().link_faults) {
    const int pod = cluster.PodOfLeafGroup(leaf_group_of(fault.node.value()));
    const bool is_of_spine =
        fault.part == FaultyPart::kSpine || fault.part == FaultyPart::kCoreLink;
    if (is_of_spine) touched.spines.emplace(pod, fault.index);
    if (fault.part == FaultyPart::kUplink && fault.to) touched.spines.emplace(pod, *fault.to);
    if (fault.part == FaultyPart::kCoreLink && fault.to) touched.cores.insert(*fault.to);
  }
  return touched;
}

std::vector<Shown> Choose(int count, const std::function<bool(int, int)>& is_alike,
                          const std::function<bool(int)>& is_touched) {
  std::vector<Shown> shown;
  for (int first = 0; first < count;) {
    int last = first + 1;
    while (last < count && is_alike(first, last)) ++last;
    ChooseOfRun(first, last, is_touched, shown);
    first = last;
  }
  return shown;
}

}  // namespace isthmus::topology::internal
