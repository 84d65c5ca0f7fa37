#pragma once

#include "topology/cluster_spec.h"
#include "topology/internal/mistakes.h"

namespace isthmus::topology::internal {

/// Costs of paths are kept for each pair of switches.
inline constexpr int kMaxCustomSwitches = 1024;

/// The mistakes of a custom fabric.
void CheckCustom(const ClusterSpec& spec, Mistakes& mistakes);

}  // namespace isthmus::topology::internal
