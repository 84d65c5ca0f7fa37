#pragma once

#include <string>

#include "base/ids.h"
#include "base/units.h"
#include "topology/cluster.h"

namespace isthmus::topology {

/// What crosses the middle of the network at most, per direction: half of what all NICs carry
/// together, or of what all leaf switches have upwards if there are several leaf groups, or of what
/// all cores have if there are several pods, whichever is less. Faults included. 0 for one node. Of
/// no use for a custom fabric. Cost: O(links).
base::BytesPerSecond Bisection(const Cluster& cluster);

/// For people, as LabelOf of the device; of a custom fabric's switch its name.
std::string LabelOf(const Cluster& cluster, base::DeviceId device);

/// "NIC 3: dead", "uplink of leaf switch 0 to spine switch 2: 0.5 of its bandwidth".
std::string DescribeFault(const LinkFault& fault);

/// "seed 7; compute: lognormal, deviation 0.03; communication: steady".
std::string DescribeJitter(const Jitter& jitter);

/// The cluster for people: node groups, figures with their sources, the fabric, the kinds of paths
/// between GPUs with an example of each, faults, and what they cut off. Ends in a line break.
/// Cost: builds the graph of the whole cluster.
std::string DescribeCluster(const Cluster& cluster);

/// What a transfer between the GPUs of two ranks crosses, link by link. Ends in a line break.
/// Throws base::Error if a rank doesn't exist or can't be reached.
std::string DescribeRoute(const Cluster& cluster, base::Rank from, base::Rank to);

}  // namespace isthmus::topology
