#pragma once

#include "plan/program/program.h"
#include "sim/cost/collective_model.h"
#include "sim/cost/host_model.h"
#include "sim/cost/overlap.h"
#include "sim/engine/lowered.h"
#include "sim/network/traffic_map.h"
#include "topology/cluster.h"

namespace isthmus::sim {

/// The models that costs come from. Lifetime: must outlive the call.
struct CostModels {
  const SegmentModel* segments = nullptr;
  const CollectiveModel* collectives = nullptr;
  HostModel host = {};
  /// Ranks run their ops one after the other in their own thread (ranks that share a device): no op
  /// starts before the host has come to it, and each op with work takes op_issue more.
  HostOrder host_order = HostOrder::kAhead;
  base::Seconds op_issue{0};
};

/// Makes a program ready for the engine.
///
/// With `fold`, ranks are grouped into the classes of the coarsest equitable partition over (role,
/// sizes, device, localities of every group, routes and matching messages to every peer): members
/// of a class have groups whose members are of the same classes, and peers of the same class, so
/// they do everything at the same times. Exact by induction over events. Without it every rank is a
/// class. Cost: O(rounds · sum of group sizes); rounds is small (the depth of the pipeline at
/// most).
/// With `flows`, all that goes over the network is named too, and members of a class send flows of
/// equal colours (TrafficColours): they share links with the same flows. Exact by the same
/// induction, since rates depend on nothing else. Throws base::Error that says what for where dead
/// links leave no route, with `flows` or without.
Lowered Lower(const plan::Program& program, const topology::Cluster& cluster,
              const CostModels& models, bool fold, bool flows = false);

/// The same for a program that shares the network with others, on other devices of the same
/// cluster: nothing is folded, and what flows is named in `map`, which is of all of them and is
/// settled behind the last.
Lowered LowerOnto(TrafficMap& map, const plan::Program& program, const topology::Cluster& cluster,
                  const CostModels& models);

}  // namespace isthmus::sim
