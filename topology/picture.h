#pragma once

#include <string>

#include "topology/cluster.h"

namespace isthmus::topology {

/// The cluster as a picture in SVG: cores, spines, leaves and nodes from the top down, with the
/// bandwidths of their links.
///
/// Of equal neighbours (nodes of a leaf group, leaf groups, pods, switches of a layer) the first is
/// drawn and the others counted; what a fault touches is drawn itself, in red.
/// Cost: O(nodes + faults).
std::string DrawCluster(const Cluster& cluster);

}  // namespace isthmus::topology
