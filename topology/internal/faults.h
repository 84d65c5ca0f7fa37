#pragma once

#include <utility>
#include <vector>

#include "base/ids.h"
#include "topology/cluster_spec.h"
#include "topology/internal/numbering.h"

namespace isthmus::topology::internal {

/// What the spec's faults leave of links, as (up link, factor) sorted by link; others are sound.
///
/// Faults of one link multiply. Where the switches of a layer count as one device, its link has the
/// mean of what is left of the links it stands for. Takes a spec that has been checked.
/// Cost: O(links that faults are about).
std::vector<std::pair<base::LinkId, double>> LinkFactors(const ClusterSpec& spec,
                                                         const Numbering& numbering);

}  // namespace isthmus::topology::internal
