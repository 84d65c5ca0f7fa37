#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "topology/cluster.h"

/// What a picture of a cluster shows, and what it only counts.
namespace isthmus::topology::internal {

/// A run of nodes under the same leaf switches.
struct LeafGroupPart {
  int node_group = 0;
  int first_node = 0;
  int num_nodes = 0;
  friend bool operator==(const LeafGroupPart&, const LeafGroupPart&) = default;

  bool IsLike(const LeafGroupPart& other) const {
    return node_group == other.node_group && num_nodes == other.num_nodes;
  }
};

/// The leaf groups in their order; without NICs the whole cluster is one.
std::vector<LeafGroupPart> LeafGroupsOf(const Cluster& cluster);

/// What faults and slow GPUs touch, by numbers over the cluster. Spines by pod and index.
struct TouchedParts {
  std::set<int> nodes;
  std::set<int> leaf_groups;  ///< those of the nodes, and of faulty uplinks
  std::set<int> pods;
  std::set<std::pair<int, int>> spines;
  std::set<int> cores;
};
TouchedParts TouchedBy(const Cluster& cluster);

/// One part to draw, or `more` to count.
struct Shown {
  int index = 0;
  int more = 0;              ///< 0: draw part `index`
  bool has_touched = false;  ///< among those that are counted
};

/// Of `count` parts, in their order: of each run of alike ones the first and what `is_touched`
/// (four at most), the rest as a number; runs of up to three are drawn whole.
std::vector<Shown> Choose(int count, const std::function<bool(int, int)>& is_alike,
                          const std::function<bool(int)>& is_touched);

}  // namespace isthmus::topology::internal
