#pragma once

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "sim/engine/lowered.h"
#include "sim/simulate.h"
#include "topology/cluster.h"
#include "traces/trace.h"

namespace isthmus::sim {

/// The static half of a predicted trace: ops, groups, classes, FLOPs, payloads.
traces::Header DescribeRun(const Lowered& lowered, const topology::Cluster& cluster,
                           const profiles::Profile& profile, const SimOptions& options,
                           const RunFacts& facts);

}  // namespace isthmus::sim
