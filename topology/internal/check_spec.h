#pragma once

#include "topology/cluster_spec.h"

namespace isthmus::topology::internal {

/// A cluster of more GPUs is taken for a slip of the pen.
inline constexpr int kMaxGpus = 1 << 20;
inline constexpr int kMaxGpusPerNode = 64;

/// Throws base::Error with one line for every mistake of the spec, each with the way out.
void CheckSpec(const ClusterSpec& spec);

/// The part a fault is about exists: returns the number of such parts of that node.
int NumParts(const NodeGroup& group, LeafWiring wiring, FaultyPart part);

}  // namespace isthmus::topology::internal
