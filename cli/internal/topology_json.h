#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/ids.h"
#include "topology/cluster.h"

/// What `isthmus topology --json` prints.
namespace isthmus::cli::internal {

/// The cluster: counts, figures, fabric, faults and what they cut off. Keys are added, none
/// renamed. Cost: builds the graph of the whole cluster.
nlohmann::ordered_json ClusterJson(const topology::Cluster& cluster);

/// What a transfer crosses. Throws base::Error if a rank doesn't exist or can't be reached.
nlohmann::ordered_json RouteJson(const topology::Cluster& cluster, base::Rank from, base::Rank to);

}  // namespace isthmus::cli::internal
