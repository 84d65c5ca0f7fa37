#pragma once

#include "base/random.h"
#include "topology/cluster_spec.h"

/// Clusters to try properties on.
namespace isthmus::tests {

int Between(base::RandomStream& random, int low, int high);

/// A small cluster of up to three node groups, two or three tiers, with or without ECMP, NVLink
/// domains of several nodes and sound links.
topology::ClusterSpec RandomCluster(base::RandomStream& random);

/// The same cluster with its switches and their cables as a custom fabric.
topology::ClusterSpec AsCustom(topology::ClusterSpec spec);

/// Adds up to `count` faults, each dead with the probability `dead`, else with a part of its
/// bandwidth left.
void AddFaults(topology::ClusterSpec& spec, base::RandomStream& random, int count, double dead);

}  // namespace isthmus::tests
