#pragma once

#include <string>
#include <vector>

#include "topology/cluster_spec.h"

namespace isthmus::topology {

/// A mistake of a spec, with the way out.
struct SpecMistake {
  std::string path;  ///< of the value, as a file has it: "node_groups.dgx.nic_latency"
  std::string what;
  std::string hint;
};

/// All mistakes of a spec; none if `Cluster` can be built from it.
std::vector<SpecMistake> MistakesOf(const ClusterSpec& spec);

}  // namespace isthmus::topology
