#pragma once

#include <cstddef>

#include "plan/program/program.h"
#include "reports/link_figures.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "topology/cluster.h"

namespace isthmus::studies {

/// What crossed the links of a run, in the words of its scenario, program and cluster; of the links
/// the `num_hottest` hottest one by one. Needs an outcome with its link_history.
reports::LinkFigures DescribeLinks(const sim::Outcome& outcome, const scenarios::Scenario& scenario,
                                   const plan::Program& program, const topology::Cluster& cluster,
                                   std::size_t num_hottest);

}  // namespace isthmus::studies
