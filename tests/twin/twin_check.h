#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/program/program.h"
#include "profiles/profile.h"
#include "topology/cluster.h"

namespace isthmus::tests {

/// Executes `program` on the fake backend and simulates it unfolded and folded, then compares: ops
/// by rank and lane, op records, messages by pair of ranks, members and bytes of communicators
/// against each other and against what the program says. Returns what differs; empty if they are
/// twins.
std::vector<std::string> CheckTwins(const plan::Program& program, const topology::Cluster& cluster,
                                    const profiles::Profile& profile);

}  // namespace isthmus::tests
