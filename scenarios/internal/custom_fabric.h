#pragma once

#include "scenarios/internal/diagnostics.h"
#include "scenarios/internal/node.h"
#include "topology/cluster_spec.h"

namespace isthmus::scenarios::internal {

/// A fabric given cable by cable has no layers. Keys of layers that stand beside it in one file, or
/// come by --set, are mistakes; what a preset further down says of them is dropped.
///
/// `root` is the tree that holds `cluster`.
void SettleCustomFabric(const Node& root, topology::ClusterSpec& cluster, Diagnostics& diagnostics);

}  // namespace isthmus::scenarios::internal
