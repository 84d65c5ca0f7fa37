#include "scenarios/internal/custom_fabric.h"

#include <string>
#include <string_view>

namespace isthmus::scenarios::internal {

void SettleCustomFabric(const Node& root, topology::ClusterSpec& cluster,
                        Diagnostics& diagnostics) {
  if (!cluster.fabric.custom) return;
  const Origin& custom = Locate(root, "cluster.fabric.custom").node->origin;
  const topology::FabricSpec fresh;
  for (const std::string_view key :
       {"wiring", "nodes_per_leaf_group", "oversubscription", "num_spines"}) {
    if (key == "wiring" && cluster.fabric.wiring == fresh.wiring) continue;  // exports write it
    const std::string path = JoinPath("cluster.fabric", key);
    const Place place = Locate(root, path);
    if (!place.is_exact || place.node->is_null()) continue;
    const Origin& origin = place.node->origin;
    const bool is_beside = origin.kind == Origin::Kind::kSet ||
                           (origin.kind == Origin::Kind::kFile && origin.file == custom.file);
    if (!is_beside) continue;
    diagnostics.AddAt(root, path, "is given beside a custom fabric, which has no layers",
                      "leave one of the two out");
  }
  cluster.fabric.wiring = fresh.wiring;
  cluster.fabric.nodes_per_leaf_group = fresh.nodes_per_leaf_group;
  cluster.fabric.oversubscription = fresh.oversubscription;
  cluster.fabric.num_spines = fresh.num_spines;
}

}  // namespace isthmus::scenarios::internal
