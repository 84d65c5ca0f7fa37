#include "topology/picture.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "topology/internal/canvas.h"
#include "topology/internal/captions.h"
#include "topology/internal/custom_drawing.h"
#include "topology/internal/description.h"
#include "topology/internal/node_drawing.h"
#include "topology/internal/picture_parts.h"

namespace isthmus::topology {
namespace {

using internal::Canvas;
using internal::kGap;
using internal::kGrey;
using internal::kMoreWidth;
using internal::kSwitchFill;
using internal::kSwitchHeight;
using internal::LeafGroupPart;
using internal::Shown;
using internal::Spot;
using internal::Svg;
using Anchor = Svg::Anchor;

constexpr double kMargin = 170;  // left, for the names of layers
constexpr double kTop = 64;
constexpr double kTier = 96;  // from one layer to the next
constexpr double kLeafPitch = 24;
constexpr double kSwitchWidth = 58;
constexpr double kLeafGroupLabel = 84;
constexpr double kCharWidth = 6.5;  // of texts of the usual size, about

class Picture {
 public:
  explicit Picture(const Cluster& cluster)
      : cluster_(cluster),
        canvas_(cluster),
        svg_(canvas_.svg()),
        leaf_groups_(internal::LeafGroupsOf(cluster)),
        touched_(internal::TouchedBy(cluster)),
        has_leaves_(cluster.CountOf(DeviceKind::kLeaf) > 0),
        has_cores_(cluster.CountOf(DeviceKind::kCore) > 0),
        spine_y_(kTop + (has_cores_ ? kTier : 0)),
        leaf_y_(spine_y_ + kTier),
        node_y_(has_leaves_ ? leaf_y_ + kTier : kTop + kTier * NumCustomRows(cluster)),
        nodes_(canvas_, touched_, node_y_) {}

  std::string Draw() {
    const double right = DrawPods(kMargin);
    if (has_cores_) DrawCores(kMargin, right);
    if (cluster_.spec().fabric.custom) {
      internal::CustomDrawing(canvas_, kTier, node_y_).Draw(custom_nics_, kMargin, right);
    }
    NameLayers();
    const ClusterSpec& spec = cluster_.spec();
    const std::string size = IsHost()
                                 ? "one machine"
                                 : base::Counted(cluster_.num_nodes(), "node", "nodes") + ", " +
                                       base::Counted(cluster_.num_gpus(), "GPU", "GPUs");
    svg_.Text(16, 28, Anchor::kStart, fmt::format("cluster {}: {}", spec.name, size), 16);
    svg_.Text(16, 46, Anchor::kStart, "bandwidths per direction; equal parts are drawn once", 11,
              kGrey);
    const double bottom = internal::DrawLegend(canvas_, nodes_.bottom() + 34);
    return svg_.Finish(std::max(svg_.right() + 24, 760.0), bottom + 16);
  }

 private:
  bool IsHost() const { return cluster_.spec().ranks_share == RanksShare::kCores; }

  static int NumCustomRows(const Cluster& cluster) {
    return cluster.spec().fabric.custom ? internal::CustomDrawing::NumRowsOf(cluster) : 0;
  }

  double DrawLeafGroup(int number, double x) {
    const LeafGroupPart& part = leaf_groups_[static_cast<std::size_t>(number)];
    const double end = nodes_.DrawNodesOf(part, x);
    custom_nics_.insert(custom_nics_.end(), nodes_.nics().begin(), nodes_.nics().end());
    return has_leaves_ ? DrawLeaves(number, x, end) : end;
  }

  // The leaves that the NICs drawn last lead to. Returns where the leaf group ends.
  double DrawLeaves(int leaf_group, double x, double end) {
    std::vector<Spot> leaves;
    const auto spot_of = [&leaves](int leaf) {
      return std::ranges::find(leaves, leaf, &Spot::number);
    };
    const int first_leaf = cluster_.DeviceNumbered(DeviceKind::kLeaf, 0).value();
    for (const Spot& nic : nodes_.nics()) {
      const int leaf = UpLinkOf(DeviceKind::kNic, nic.number).to.value() - first_leaf;
      if (spot_of(leaf) == leaves.end()) leaves.push_back({leaf, 0});
    }
    std::ranges::sort(leaves, {}, &Spot::number);
    const double width = static_cast<double>(leaves.size()) * kLeafPitch;
    end = std::max(end, x + width + kLeafGroupLabel);
    for (std::size_t index = 0; index < leaves.size(); ++index) {
      Spot& leaf = leaves[index];
      leaf.x = (x + end - width) / 2 + (static_cast<double>(index) + 0.5) * kLeafPitch;
      svg_.Box(leaf.x - 10, leaf_y_, 20, kSwitchHeight, kSwitchFill, {.colour = kGrey},
               LabelOf(cluster_.DeviceAt(cluster_.DeviceNumbered(DeviceKind::kLeaf, leaf.number))));
      svg_.Text(leaf.x, leaf_y_ + 13, Anchor::kMiddle, fmt::format("{}", index), 10);
      leaves_.push_back(leaf);
    }
    svg_.Text((x + end + width) / 2 + 4, leaf_y_ + 13, Anchor::kStart,
              fmt::format("leaf group {}", leaf_group), 10, kGrey);
    for (const Spot& nic : nodes_.nics()) {
      const Link link = UpLinkOf(DeviceKind::kNic, nic.number);
      const Spot& leaf = *spot_of(link.to.value() - first_leaf);
      canvas_.DrawLink(link.id, nic.x, node_y_ + 4, leaf.x, leaf_y_ + kSwitchHeight);
    }
    return end;
  }

  // The one link of a NIC to its leaf.
  Link UpLinkOf(DeviceKind kind, int number) const {
    const base::DeviceId device = cluster_.DeviceNumbered(kind, number);
    return cluster_.LinkAt(cluster_.LinksFrom(device).back());
  }

  int LeafGroupsPerPod() const {
    const auto& core = cluster_.spec().fabric.core;
    return core ? core->leaf_groups_per_pod.value : static_cast<int>(leaf_groups_.size());
  }
  int LeafGroupsIn(int pod) const {
    return std::min(LeafGroupsPerPod(),
                    static_cast<int>(leaf_groups_.size()) - pod * LeafGroupsPerPod());
  }
  const LeafGroupPart& LeafGroupAt(int pod, int index) const {
    const std::int64_t first = std::int64_t{pod} * LeafGroupsPerPod();
    return leaf_groups_.at(static_cast<std::size_t>(first + index));
  }

  double DrawPod(int pod, double x) {
    const double start = x;
    const std::size_t first_leaf = leaves_.size();
    const int first = pod * LeafGroupsPerPod();
    const std::vector<Shown> groups = internal::Choose(
        LeafGroupsIn(pod),
        [&](int a, int b) { return LeafGroupAt(pod, a).IsLike(LeafGroupAt(pod, b)); },
        [&](int index) { return touched_.leaf_groups.contains(first + index); });
    for (const Shown& group : groups) {
      if (group.more == 0) {
        x = DrawLeafGroup(first + group.index, x) + 2 * kGap;
        continue;
      }
      canvas_.DrawMore(group, x, leaf_y_, kMoreWidth + 10, node_y_ - leaf_y_ + 60, "leaf groups");
      x += kMoreWidth + 10 + 2 * kGap;
    }
    if (has_leaves_) DrawSpines(pod, start, x - 2 * kGap, first_leaf);
    return x - 2 * kGap;
  }

  double DrawPods(double x) {
    const auto is_alike = [&](int a, int b) {
      if (LeafGroupsIn(a) != LeafGroupsIn(b)) return false;
      for (int index = 0; index < LeafGroupsIn(a); ++index) {
        if (!LeafGroupAt(a, index).IsLike(LeafGroupAt(b, index))) return false;
      }
      return true;
    };
    const std::vector<Shown> pods =
        internal::Choose(has_cores_ ? cluster_.num_pods() : 1, is_alike,
                         [&](int pod) { return touched_.pods.contains(pod); });
    for (const Shown& pod : pods) {
      if (pod.more == 0) {
        x = DrawPod(pod.index, x) + 4 * kGap;
        continue;
      }
      canvas_.DrawMore(pod, x, spine_y_, kMoreWidth + 20, node_y_ - spine_y_ + 60, "pods");
      x += kMoreWidth + 20 + 4 * kGap;
    }
    return x - 4 * kGap;
  }

  // A layer's switches in a row between two borders: one box for all, or single ones. Returns the
  // spots of those drawn; `first` is the number of the first device.
  std::vector<Spot> DrawSwitches(const std::vector<Shown>& switches, DeviceKind kind, int first,
                                 std::string_view layer, double x, double end, double y) {
    const double middle = (x + end) / 2;
    if (!layer.empty()) {
      const double text_width = kCharWidth * static_cast<double>(layer.size()) + 16;
      const double width = std::max({(end - x) * 0.7, 150.0, text_width});
      svg_.Box(middle - width / 2, y, width, kSwitchHeight, kSwitchFill, {.colour = kGrey});
      svg_.Text(middle, y + 13, Anchor::kMiddle, layer);
      return {{first, middle}};
    }
    std::vector<Spot> spots;
    double left = middle - static_cast<double>(switches.size()) * (kSwitchWidth + kGap) / 2;
    for (const Shown& shown : switches) {
      if (shown.more > 0) {
        canvas_.DrawMore(shown, left - 6, y, kSwitchWidth + 12, kSwitchHeight, {});
      } else {
        const int number = first + shown.index;
        const std::string label = LabelOf(cluster_.DeviceAt(cluster_.DeviceNumbered(kind, number)));
        svg_.Box(left, y, kSwitchWidth, kSwitchHeight, kSwitchFill, {.colour = kGrey}, label);
        svg_.Text(left + kSwitchWidth / 2, y + 13, Anchor::kMiddle, label, 10);
        spots.push_back({number, left + kSwitchWidth / 2});
      }
      left += kSwitchWidth + kGap;
    }
    return spots;
  }

  static std::string Layer(std::string_view name, int count) {
    return count == 1 ? std::string(name)
                      : fmt::format("{}: {} switches, evenly used", name, count);
  }

  void DrawSpines(int pod, double x, double end, std::size_t first_leaf) {
    const FabricSpec& fabric = cluster_.spec().fabric;
    const int count = fabric.ecmp ? fabric.num_spines.value : 1;
    const std::vector<Shown> spines = internal::Choose(
        count, [](int, int) { return true; },
        [&](int spine) {
          const bool has_core =
              std::ranges::any_of(touched_.cores, [&](int core) { return PlaneOf(core) == spine; });
          return touched_.spines.contains({pod, spine}) || has_core;
        });
    const std::string layer =
        fabric.ecmp ? ""
                    : Layer(has_cores_ ? fmt::format("spine of pod {}", pod) : "spine",
                            fabric.num_spines.value);
    const std::vector<Spot> spots =
        DrawSwitches(spines, DeviceKind::kSpine, pod * count, layer, x, end, spine_y_);
    const std::vector<Spot> leaves(leaves_.begin() + static_cast<std::ptrdiff_t>(first_leaf),
                                   leaves_.end());
    canvas_.Join(DeviceKind::kLeaf, leaves, leaf_y_, DeviceKind::kSpine, spots, spine_y_);
    spines_.insert(spines_.end(), spots.begin(), spots.end());
  }

  int PlaneOf(int core) const {
    const FabricSpec& fabric = cluster_.spec().fabric;
    return core / (fabric.core->num_cores.value / fabric.num_spines.value);
  }

  void DrawCores(double x, double end) {
    const FabricSpec& fabric = cluster_.spec().fabric;
    const int count = cluster_.CountOf(DeviceKind::kCore);
    const std::vector<Shown> cores = internal::Choose(
        count, [](int, int) { return true; },
        [&](int core) { return touched_.cores.contains(core); });
    const std::string layer = fabric.ecmp ? "" : Layer("core", fabric.core->num_cores.value);
    const std::vector<Spot> spots = DrawSwitches(cores, DeviceKind::kCore, 0, layer, x, end, kTop);
    canvas_.Join(DeviceKind::kSpine, spines_, spine_y_, DeviceKind::kCore, spots, kTop);
  }

  void NameLayer(double y, std::string_view name, std::string_view rate) {
    svg_.Text(16, y, Anchor::kStart, name, 12);
    if (!rate.empty()) svg_.Text(16, y + 15, Anchor::kStart, rate, 11, kGrey);
  }

  void NameLayers() {
    const auto rates = [this](DeviceKind kind, const std::vector<Spot>& spots, LinkKind link) {
      return internal::RatesOf(canvas_.sound(), kind, spots, link);
    };
    if (has_cores_) {
      NameLayer(kTop + 13, "core", "");
      NameLayer(kTop + kTier / 2 + 6, "spine – core link",
                rates(DeviceKind::kSpine, spines_, LinkKind::kCore));
    }
    if (has_leaves_) {
      NameLayer(spine_y_ + 13, "spine", "");
      NameLayer(spine_y_ + kTier / 2 + 6, "leaf – spine link",
                rates(DeviceKind::kLeaf, leaves_, LinkKind::kUplink));
      NameLayer(leaf_y_ + 13, "leaf", "");
      NameLayer(leaf_y_ + kTier / 2 + 6, "NIC – leaf link",
                rates(DeviceKind::kNic, FirstOfGroups(DeviceKind::kNic), LinkKind::kNic));
    }
    if (cluster_.spec().fabric.custom) {
      NameLayer(node_y_ - kTier + 13, "switches with NICs", "");
      NameLayer(node_y_ - kTier / 2 + 6, "NIC – switch link",
                rates(DeviceKind::kNic, FirstOfGroups(DeviceKind::kNic), LinkKind::kNic));
    }
    if (IsHost()) return;
    const std::vector<Spot> gpus = FirstOfGroups(DeviceKind::kGpu);
    NameLayer(node_y_ + 14, "PCIe of a GPU", rates(DeviceKind::kGpu, gpus, LinkKind::kPcie));
    NameLayer(node_y_ + 48, "NVLink of a GPU", rates(DeviceKind::kGpu, gpus, LinkKind::kNvlink));
  }

  // One of each node group.
  std::vector<Spot> FirstOfGroups(DeviceKind kind) const {
    std::vector<Spot> spots;
    int number = 0;
    for (const NodeGroup& group : cluster_.spec().node_groups) {
      const int per_node = kind == DeviceKind::kGpu ? group.gpus_per_node : group.nics_per_node;
      if (per_node > 0) spots.push_back({number});
      number += group.num_nodes * per_node;
    }
    return spots;
  }

  const Cluster& cluster_;
  Canvas canvas_;
  Svg& svg_;
  const std::vector<LeafGroupPart> leaf_groups_;
  const internal::TouchedParts touched_;
  const bool has_leaves_;
  const bool has_cores_;
  const double spine_y_;
  const double leaf_y_;
  const double node_y_;
  internal::NodeDrawing nodes_;
  std::vector<Spot> leaves_;  // all that have been drawn, as the next ones
  std::vector<Spot> custom_nics_;
  std::vector<Spot> spines_;
};

}  // namespace

std::string DrawCluster(const Cluster& cluster) { return Picture(cluster).Draw(); }

}  // namespace isthmus::topology
