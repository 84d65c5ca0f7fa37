#pragma once

#include <vector>

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "sim/engine/lowered.h"
#include "sim/memory/ledger.h"
#include "sim/simulate.h"
#include "topology/cluster.h"
#include "traces/trace.h"

namespace isthmus::sim {

/// The static half of a predicted trace: ops, groups, classes, FLOPs, payloads.
traces::Header DescribeRun(const Lowered& lowered, const topology::Cluster& cluster,
                           const profiles::Profile& profile, const SimOptions& options,
                           const RunFacts& facts);

/// The same of a run that is not simulated: who is there, no ops.
traces::Header DescribeMemory(const plan::Program& program, const std::vector<RankMemory>& kinds,
                              const topology::Cluster& cluster, const profiles::Profile& profile,
                              const RunFacts& facts);

}  // namespace isthmus::sim
