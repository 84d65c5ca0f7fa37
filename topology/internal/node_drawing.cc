#include "topology/internal/node_drawing.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/text.h"

namespace isthmus::topology::internal {
namespace {

constexpr double kGpu = 14;
constexpr double kGpuPitch = 17;
constexpr int kGpusPerRow = 8;
constexpr double kRowsY = 34;  // of the GPUs, from the node's top
constexpr double kBar = 8;     // height of an NVSwitch

double WidthOf(const NodeGroup& group) {
  return std::max(std::min(group.gpus_per_node, kGpusPerRow) * kGpuPitch + 12, 56.0);
}

double HeightOf(const NodeGroup& group) {
  const int rows = (group.gpus_per_node + kGpusPerRow - 1) / kGpusPerRow;
  return kRowsY + rows * kGpuPitch + (group.nodes_per_nvlink_domain == 1 ? 22 : 6);
}

}  // namespace

const NodeGroup& NodeDrawing::GroupOf(const LeafGroupPart& part) const {
  return canvas_.cluster().spec().node_groups[static_cast<std::size_t>(part.node_group)];
}

int NodeDrawing::FirstGpuOf(const LeafGroupPart& part, int node) const {
  int gpu = 0;
  int first_node = 0;
  for (int index = 0; index < part.node_group; ++index) {
    const NodeGroup& group = canvas_.cluster().spec().node_groups[static_cast<std::size_t>(index)];
    gpu += group.num_nodes * group.gpus_per_node;
    first_node += group.num_nodes;
  }
  return gpu + (node - first_node) * GroupOf(part).gpus_per_node;
}

void NodeDrawing::Label(double x, double y, const std::string& text) {
  canvas_.svg().Text(x, y, Svg::Anchor::kMiddle, text);
  bottom_ = std::max(bottom_, y);
}

void NodeDrawing::DrawGpu(base::DeviceId gpu, double x, double y, double bar_y) {
  const Cluster& cluster = canvas_.cluster();
  const double speed = cluster.SpeedFactorOf(gpu);
  std::string title = LabelOf(cluster.DeviceAt(gpu));
  Svg::Stroke stroke{.colour = kGrey};
  if (speed < 1) {
    title += fmt::format(": computes at {} of its speed", base::FormatFraction(speed));
    stroke = {.colour = kRed, .width = 2};
  }
  canvas_.svg().Box(x - kGpu / 2, y, kGpu, kGpu, "#ffffff", stroke, title);
  for (const base::LinkId link : cluster.LinksFrom(gpu)) {
    if (cluster.LinkAt(link).kind == LinkKind::kNvlink) canvas_.DrawLink(link, x, y, x, bar_y);
  }
}

// Unless the GPU before has the same.
void NodeDrawing::DrawNic(base::DeviceId nic, int index, double x, double pitch) {
  const Cluster& cluster = canvas_.cluster();
  const int number = nic.value() - cluster.DeviceNumbered(DeviceKind::kNic, 0).value();
  if (!nics_.empty() && nics_.back().number == number) return;
  const double middle = x + (index + 0.5) * pitch;
  const double width = std::min(pitch - 2, 13.0);
  canvas_.svg().Box(middle - width / 2, top_ + 4, width, 10, kNicFill, {.colour = kGrey},
                    LabelOf(cluster.DeviceAt(nic)));
  nics_.push_back({number, middle});
}

// Returns where it ends. The NVSwitch is at `bar_y`.
double NodeDrawing::DrawNode(const LeafGroupPart& part, int node, double x, double bar_y) {
  const Cluster& cluster = canvas_.cluster();
  const NodeGroup& group = GroupOf(part);
  const double width = WidthOf(group);
  canvas_.svg().Frame(x, top_, width, HeightOf(group), FillOf(part.node_group), {.colour = kGrey});
  const int first_gpu = FirstGpuOf(part, node);
  const int in_row = std::min(group.gpus_per_node, kGpusPerRow);
  const double first_x = x + width / 2 - (in_row - 1) * kGpuPitch / 2;
  for (int local = 0; local < group.gpus_per_node; ++local) {
    const base::DeviceId gpu{first_gpu + local};
    const double gpu_x = first_x + local % kGpusPerRow * kGpuPitch;
    const double gpu_y = top_ + kRowsY + local / kGpusPerRow * kGpuPitch;
    DrawGpu(gpu, gpu_x, gpu_y, bar_y);
    const auto nic = cluster.NicOf(gpu);
    if (!nic) continue;
    const double pitch = in_row * kGpuPitch / group.nics_per_node;
    DrawNic(*nic, cluster.DeviceAt(*nic).index, first_x - kGpuPitch / 2, pitch);
    canvas_.DrawLink(cluster.LinksFrom(gpu).back(), gpu_x, gpu_y, nics_.back().x, top_ + 14);
  }
  const bool is_domain = group.nodes_per_nvlink_domain == 1;
  if (is_domain && group.gpus_per_node > 1) {
    canvas_.svg().Box(
        x + 4, bar_y, width - 8, kBar, kNvlinkFill, {.colour = kGrey},
        fmt::format("nvswitch {}", cluster.NvlinkDomainOf(base::DeviceId{first_gpu})));
  }
  Label(x + width / 2, is_domain ? top_ + HeightOf(group) + 14 : bar_y + kBar + 14,
        fmt::format("node {}", node));
  return x + width;
}

// Where the cables of the node's NICs lead.
std::vector<base::DeviceId> NodeDrawing::SwitchesOf(const LeafGroupPart& part, int node) const {
  const Cluster& cluster = canvas_.cluster();
  const int first_gpu = FirstGpuOf(part, node);
  std::vector<base::DeviceId> switches;
  for (int local = 0; local < GroupOf(part).gpus_per_node; ++local) {
    const auto nic = cluster.NicOf(base::DeviceId{first_gpu + local});
    if (!nic) continue;
    for (const base::LinkId id : cluster.LinksFrom(*nic)) {
      const Link link = cluster.LinkAt(id);
      if (link.kind == LinkKind::kNic) switches.push_back(link.to);
    }
  }
  return switches;
}

// `count` nodes from `first` on.
double NodeDrawing::DrawRun(const LeafGroupPart& part, int first, int count, double x,
                            double bar_y) {
  // In a custom fabric nodes differ by the switches they are joined to.
  const bool is_custom = canvas_.cluster().spec().fabric.custom.has_value();
  const auto is_alike = [&](int a, int b) {
    return !is_custom || SwitchesOf(part, first + a) == SwitchesOf(part, first + b);
  };
  const std::vector<Shown> nodes =
      Choose(count, is_alike, [&](int index) { return touched_.nodes.contains(first + index); });
  for (const Shown& node : nodes) {
    if (node.more == 0) {
      x = DrawNode(part, first + node.index, x, bar_y) + kGap;
      continue;
    }
    canvas_.DrawMore(node, x, top_, kMoreWidth, HeightOf(GroupOf(part)), "nodes");
    x += kMoreWidth + kGap;
  }
  return x - kGap;
}

// NVLink domains of several nodes.
double NodeDrawing::DrawDomains(const LeafGroupPart& part, double x) {
  const NodeGroup& group = GroupOf(part);
  const int size = group.nodes_per_nvlink_domain;
  const double bar_y = top_ + HeightOf(group) + 8;
  const auto nodes_of = [&](int domain) { return std::min(size, part.num_nodes - domain * size); };
  const auto is_touched = [&](int domain) {
    const auto next = touched_.nodes.lower_bound(part.first_node + domain * size);
    return next != touched_.nodes.end() &&
           *next < part.first_node + domain * size + nodes_of(domain);
  };
  const std::vector<Shown> domains =
      Choose((part.num_nodes + size - 1) / size,
             [&](int a, int b) { return nodes_of(a) == nodes_of(b); }, is_touched);
  for (const Shown& domain : domains) {
    if (domain.more > 0) {
      canvas_.DrawMore(domain, x, top_, kMoreWidth + 10, HeightOf(group), "NVLink domains");
      x += kMoreWidth + 10 + 2 * kGap;
      continue;
    }
    const int first = part.first_node + domain.index * size;
    const double end = DrawRun(part, first, nodes_of(domain.index), x, bar_y);
    const int number = canvas_.cluster().NvlinkDomainOf(base::DeviceId{FirstGpuOf(part, first)});
    canvas_.svg().Box(x, bar_y, end - x, kBar, kNvlinkFill, {.colour = kGrey},
                      fmt::format("nvswitch {}", number));
    Label((x + end) / 2, bar_y + kBar + 29,
          fmt::format("NVLink domain {}: {} nodes", number, nodes_of(domain.index)));
    x = end + 2 * kGap;
  }
  return x - 2 * kGap;
}

double NodeDrawing::DrawNodesOf(const LeafGroupPart& part, double x) {
  nics_.clear();
  const NodeGroup& group = GroupOf(part);
  if (group.nodes_per_nvlink_domain > 1) return DrawDomains(part, x);
  return DrawRun(part, part.first_node, part.num_nodes, x, top_ + HeightOf(group) - 14);
}

}  // namespace isthmus::topology::internal
