#pragma once

#include <vector>

#include "plan/program/program.h"
#include "reports/figures.h"
#include "sim/simulate.h"
#include "topology/cluster.h"

namespace isthmus::studies::internal {

// Of pieces of a critical path whose like lost time to what shared their links, the link on which
// it lost most of that, as link_kind and link: what others decide is not what the piece's own bytes
// keep busy longest. Losses to other jobs count whatever they are, those to flows of this job if
// their mean by flow is a twentieth of the piece. Like is what has the module, purpose and
// operation. `link` stays empty where several links cost as much. Needs an outcome with its
// link_history.
void NameContendedLinks(const plan::Program& program, const topology::Cluster& cluster,
                        const sim::Outcome& outcome, std::vector<reports::PathSegment>& path);

}  // namespace isthmus::studies::internal
