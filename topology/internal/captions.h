#pragma once

#include <string>
#include <vector>

#include "topology/internal/canvas.h"

/// The texts of a picture.
namespace isthmus::topology::internal {

/// "50.0 GB/s", or the least and the most where links of these devices differ.
std::string RatesOf(const Cluster& cluster, DeviceKind kind, const std::vector<Spot>& devices,
                    LinkKind link_kind);

/// What boxes and colours mean, oversubscription and faults, from y downwards. Returns where it
/// ends.
double DrawLegend(Canvas& canvas, double y);

}  // namespace isthmus::topology::internal
