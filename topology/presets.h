#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/cluster_spec.h"

namespace isthmus::topology {

/// Known machines. Bandwidths are data-sheet figures, not what a transfer achieves: that is a
/// profile's business. Latencies are assumed, and so are some facts of the fabric; each source says
/// so. All take 1 node or more.

/// 8 H100 80 GB, NVLink 4, 8 × 400 Gb/s; scalable units of 32 nodes.
ClusterSpec H100Dgx(int num_nodes);
/// As h100-dgx with H200 GPUs.
ClusterSpec H200Dgx(int num_nodes);
/// 8 A100 80 GB, NVLink 3, 8 × 200 Gb/s; scalable units of 20 nodes.
ClusterSpec A100Dgx(int num_nodes);

/// "h100-dgx", "h200-dgx", "a100-dgx".
std::vector<std::string> PresetNames();
/// Absent if no preset has the name.
std::optional<ClusterSpec> FindPreset(std::string_view name, int num_nodes);

}  // namespace isthmus::topology
