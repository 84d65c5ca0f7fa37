#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "topology/cluster.h"

namespace isthmus::topology {

/// What one switch of a layer carries, without faults: ports are whole ones, so that less may be
/// saved above than was asked for.
struct SwitchBandwidth {
  base::BytesPerSecond down{0};  ///< to what is below it, where its leaf group or pod is full
  base::BytesPerSecond up{0};    ///< of its ports to the layer above
  double asked = 1;              ///< oversubscription as the spec has it
  std::string where{};           ///< "in dgx", "in pods 0-3"; empty if all of the layer are alike

  double built() const { return down / up; }
  /// Whether whole ports make no more difference than a part of what was asked.
  bool IsAsAsked(double tolerance) const { return built() >= (1 - tolerance) * asked; }
};

/// Of a leaf switch, those alike once, in the order of node groups; empty without leaves.
/// Cost: builds the cluster without its faults; O(links of a switch) a node group.
std::vector<SwitchBandwidth> LeafBandwidths(const Cluster& cluster);
/// Of a spine switch, those alike once, by pods; empty without a third tier. Cost: as above, and
/// O(leaf groups).
std::vector<SwitchBandwidth> SpineBandwidths(const Cluster& cluster);

/// "1 : 1", "100 : 1 asked, 4 : 1 with whole ports". Needs at least one.
std::string DescribeOversubscription(const std::vector<SwitchBandwidth>& layer);

}  // namespace isthmus::topology
