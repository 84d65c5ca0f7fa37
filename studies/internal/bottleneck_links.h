#pragma once

#include <vector>

#include "plan/program/program.h"
#include "reports/figures.h"
#include "topology/cluster.h"

namespace isthmus::studies::internal {

// Fills link_kind and link of pieces of a critical path that move bytes: of all links that the
// message, collective or copy crosses, the one that its own bytes keep busy longest, by the flows
// of docs/models/flow.md (what else is on the network doesn't enter). `link` stays empty where
// several links are equally busy, as the NICs of a sound ring are, and both where the ranks are on
// one device.
//
// Communication inside a block is that of its module's axis (tp, cp). Cost: a route per pair of
// neighbours in each distinct group on the path.
void NameBottleneckLinks(const plan::Program& program, const topology::Cluster& cluster,
                         std::vector<reports::PathSegment>& path);

}  // namespace isthmus::studies::internal
