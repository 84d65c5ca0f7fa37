#include "base/text.h"
#include "topology/describe.h"
#include "topology/internal/description.h"
#include "topology/oversubscription.h"

namespace isthmus::topology::internal {
namespace {

std::string Oversubscription(std::string_view of_what, const std::vector<SwitchBandwidth>& layer,
                             const Sourced<double>& asked, Sources& sources) {
  return Row(of_what, DescribeOversubscription(layer) + " " + sources.Mark(asked.source));
}

// What a switch has upwards, a row for each kind of switch.
std::string Together(std::string_view of_what, const std::vector<SwitchBandwidth>& layer) {
  std::string text;
  for (const SwitchBandwidth& of_switch : layer) {
    text += Row(of_what, fmt::format("{:>9} together{}{}", base::FormatRate(of_switch.up),
                                     of_switch.where.empty() ? "" : " ", of_switch.where));
  }
  return text;
}

std::string DescribeCore(const Cluster& cluster, Sources& sources) {
  const CoreTier& core = *cluster.spec().fabric.core;
  std::string text =
      Row("a pod",
          fmt::format("{} {}",
                      base::Counted(core.leaf_groups_per_pod.value, "leaf group", "leaf groups"),
                      sources.Mark(core.leaf_groups_per_pod.source)));
  text += Row("core switches",
              fmt::format("{} {}", core.num_cores.value, sources.Mark(core.num_cores.source)));
  text += Row("pods here", fmt::format("{}", cluster.num_pods()));
  const std::vector<SwitchBandwidth> spines = SpineBandwidths(cluster);
  text += Oversubscription("spine to core", spines, core.oversubscription, sources);
  text += Row("port to the core", sources.Figures(core.port_bandwidth, core.hop_latency));
  return text + Together("ports of a spine", spines);
}

std::string DescribeCustom(const Cluster& cluster) {
  const CustomFabric& custom = *cluster.spec().fabric.custom;
  std::string text = "\nfabric: given cable by cable\n";
  text += Row("switches", fmt::format("{}", custom.switches.size()));
  std::int64_t cables = 0;
  for (int number = 0; number < cluster.CountOf(DeviceKind::kSwitch); ++number) {
    const base::DeviceId device = cluster.DeviceNumbered(DeviceKind::kSwitch, number);
    for (const base::LinkId id : cluster.LinksFrom(device)) {
      const Link link = cluster.LinkAt(id);
      cables += link.kind == LinkKind::kNic || LeadsUp(link.id) ? 1 : 0;  // once each
    }
  }
  text += Row("links", base::FormatCount(cables));
  const std::uint64_t seed = cluster.spec().fabric.ecmp ? cluster.spec().fabric.ecmp->seed : 0;
  return text +
         Row("multi-path", fmt::format("a path for each pair of NICs, drawn with seed {}", seed));
}

}  // namespace

std::string DescribeFabric(const Cluster& cluster, Sources& sources) {
  if (cluster.spec().fabric.custom) return DescribeCustom(cluster);
  const int num_leaves = cluster.CountOf(DeviceKind::kLeaf);
  if (num_leaves == 0) return "\nno network\n";
  const FabricSpec& fabric = cluster.spec().fabric;
  std::string text = fmt::format(
      "\nfabric: {}, {}\n", fabric.core ? "leaf, spine and core" : "leaf and spine",
      fabric.wiring == LeafWiring::kRailOptimised ? "one leaf switch for each rail of a leaf group"
                                                  : "one leaf switch for all NICs of a leaf group");
  text +=
      Row("a leaf group",
          fmt::format("{} {}", base::Counted(fabric.nodes_per_leaf_group.value, "node", "nodes"),
                      sources.Mark(fabric.nodes_per_leaf_group.source)));
  text += Row(
      "in this cluster",
      fmt::format("{}, {}", base::Counted(cluster.num_leaf_groups(), "leaf group", "leaf groups"),
                  base::Counted(num_leaves, "leaf switch", "leaf switches")));
  const std::vector<SwitchBandwidth> leaves = LeafBandwidths(cluster);
  text += Oversubscription("oversubscription", leaves, fabric.oversubscription, sources);
  text +=
      Row("port to the spine", sources.Figures(fabric.spine_port_bandwidth, fabric.hop_latency));
  text += Together("ports of a leaf", leaves);
  if (fabric.num_spines != FabricSpec{}.num_spines) {
    text +=
        Row(fabric.core ? "spines of a pod" : "spine switches",
            fmt::format("{} {}", fabric.num_spines.value, sources.Mark(fabric.num_spines.source)));
  }
  if (fabric.core) text += DescribeCore(cluster, sources);
  if (fabric.ecmp) {
    text += Row("multi-path", fmt::format("a switch for each pair of NICs, drawn with seed {}",
                                          fabric.ecmp->seed));
  }
  if (cluster.num_nodes() > 1) {
    text += Row("bisection", fmt::format("{:>9}", base::FormatRate(Bisection(cluster))));
  }
  return text;
}

}  // namespace isthmus::topology::internal
