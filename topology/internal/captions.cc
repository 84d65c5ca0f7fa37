#include "topology/internal/captions.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "topology/describe.h"
#include "topology/internal/description.h"
#include "topology/oversubscription.h"

namespace isthmus::topology::internal {
namespace {

constexpr double kLeft = 16;
constexpr double kLine = 18;

void DrawEntry(Svg& svg, double x, double y, std::string_view fill, std::string_view text) {
  svg.Box(x, y - 10, 12, 12, fill, {.colour = kGrey});
  svg.Text(x + kLine, y, Svg::Anchor::kStart, text);
}

std::string DescribeTiers(const Cluster& cluster) {
  const FabricSpec& fabric = cluster.spec().fabric;
  std::string text = "leaf to spine " + DescribeOversubscription(LeafBandwidths(cluster));
  if (fabric.core) {
    text += "; spine to core " + DescribeOversubscription(SpineBandwidths(cluster));
  }
  if (cluster.num_nodes() > 1) text += "; bisection " + base::FormatRate(Bisection(cluster));
  if (fabric.ecmp) text += fmt::format("; ECMP drawn with seed {}", fabric.ecmp->seed);
  return text;
}

double DrawFaults(Svg& svg, const ClusterSpec& spec, double y) {
  std::vector<std::string> texts;
  for (const LinkFault& fault : spec.link_faults) {
    texts.push_back(fmt::format("node {}, {}", fault.node.value(), DescribeFault(fault)));
  }
  for (const SlowGpu& gpu : spec.slow_gpus) {
    texts.push_back(fmt::format("GPU {} computes at {} of its speed", gpu.device.value(),
                                base::FormatFraction(gpu.speed_factor)));
  }
  if (spec.jitter) texts.push_back("jitter: " + DescribeJitter(*spec.jitter));
  constexpr std::size_t kMostFaults = 12;
  if (texts.size() > kMostFaults) {
    const std::string rest = fmt::format("{} more faults", texts.size() - kMostFaults);
    texts.resize(kMostFaults);
    texts.push_back(rest);
  }
  for (const std::string& text : texts) {
    svg.Text(kLeft, y, Svg::Anchor::kStart, text, 11, kRed);
    y += kLine;
  }
  return y;
}

}  // namespace

std::string RatesOf(const Cluster& cluster, DeviceKind kind, const std::vector<Spot>& devices,
                    LinkKind link_kind) {
  std::vector<base::BytesPerSecond> rates;
  for (const Spot& spot : devices) {
    for (const base::LinkId id : cluster.LinksFrom(cluster.DeviceNumbered(kind, spot.number))) {
      const Link link = cluster.LinkAt(id);
      if (link.kind == link_kind) rates.push_back(link.bandwidth);
    }
  }
  if (rates.empty()) return "none";
  const auto [least, most] = std::ranges::minmax(rates);
  if (most.value() == 0) return "none";
  return least == most ? base::FormatRate(least)
                       : base::FormatRate(least) + " to " + base::FormatRate(most);
}

double DrawLegend(Canvas& canvas, double y) {
  const Cluster& cluster = canvas.cluster();
  Svg& svg = canvas.svg();
  const std::vector<NodeGroup>& groups = cluster.spec().node_groups;
  for (int index = 0; index < static_cast<int>(groups.size()); ++index, y += kLine) {
    const NodeGroup& group = groups[static_cast<std::size_t>(index)];
    DrawEntry(svg, kLeft, y, FillOf(index),
              fmt::format("node group {}: {} of {} x {}, {}", group.name,
                          base::Counted(group.num_nodes, "node", "nodes"), group.gpus_per_node,
                          group.gpu, base::Counted(group.nics_per_node, "NIC", "NICs")));
  }
  if (cluster.spec().ranks_share == RanksShare::kCores) return DrawFaults(svg, cluster.spec(), y);
  double x = kLeft;
  for (const auto& [fill, name] :
       {std::pair(kNicFill, "NIC"), std::pair(std::string_view("#ffffff"), "GPU"),
        std::pair(kNvlinkFill, "NVSwitch"), std::pair(kSwitchFill, "switch")}) {
    DrawEntry(svg, x, y, fill, name);
    x += 78;
  }
  y += kLine;
  if (cluster.CountOf(DeviceKind::kLeaf) > 0) {
    svg.Text(kLeft, y, Svg::Anchor::kStart, DescribeTiers(cluster));
    y += kLine;
  }
  return DrawFaults(svg, cluster.spec(), y);
}

}  // namespace isthmus::topology::internal
