#include "topology/internal/canvas.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "topology/describe.h"

namespace isthmus::topology::internal {
namespace {

// Tints of Okabe and Ito's colours.
constexpr std::array<std::string_view, 6> kGroupFills = {"#dbe9f6", "#fbe3d6", "#d9f2ea",
                                                         "#f6e3ee", "#fdf1d3", "#e3f3fc"};

ClusterSpec WithoutFaults(ClusterSpec spec) {
  spec.link_faults.clear();
  return spec;
}

}  // namespace

std::string_view FillOf(int node_group) {
  return kGroupFills[static_cast<std::size_t>(node_group) % kGroupFills.size()];
}

Canvas::Canvas(const Cluster& cluster) : cluster_(cluster), sound_(WithoutFaults(cluster.spec())) {}

void Canvas::DrawLink(base::LinkId id, double x1, double y1, double x2, double y2) {
  const Link link = cluster_.LinkAt(id);
  Svg::Stroke stroke;
  if (link.bandwidth < sound_.LinkAt(id).bandwidth) {
    stroke = {.colour = kRed, .width = 2, .is_dashed = link.is_dead()};
  }
  svg_.Line(x1, y1, x2, y2, stroke,
            fmt::format("{} {} to {}: {}", NameOf(link.kind), LabelOf(cluster_, link.from),
                        LabelOf(cluster_, link.to), base::FormatRate(link.bandwidth)));
}

void Canvas::Join(DeviceKind lower_kind, const std::vector<Spot>& lower, double lower_y,
                  DeviceKind upper_kind, const std::vector<Spot>& upper, double upper_y) {
  for (const Spot& low : lower) {
    for (const base::LinkId id :
         cluster_.LinksFrom(cluster_.DeviceNumbered(lower_kind, low.number))) {
      for (const Spot& high : upper) {
        if (cluster_.LinkAt(id).to != cluster_.DeviceNumbered(upper_kind, high.number)) continue;
        DrawLink(id, low.x, lower_y, high.x, upper_y + kSwitchHeight);
      }
    }
  }
}

void Canvas::DrawMore(const Shown& shown, double x, double y, double width, double height,
                      std::string_view what) {
  const std::string_view colour = shown.has_touched ? kRed : kGrey;
  svg_.Box(x, y, width, height, "#fafafa", {.colour = colour, .is_dashed = true});
  const double middle = y + height / 2;
  const bool is_flat = height < 30;
  svg_.Text(x + width / 2, is_flat ? middle + 4 : middle - 2, Svg::Anchor::kMiddle,
            fmt::format("× {} more", base::FormatCount(shown.more)), is_flat ? 10 : 12, colour);
  if (is_flat) return;
  svg_.Text(x + width / 2, middle + 13, Svg::Anchor::kMiddle, what, 10, colour);
  if (shown.has_touched) {
    svg_.Text(x + width / 2, middle + 26, Svg::Anchor::kMiddle, "some with faults", 10, kRed);
  }
}

}  // namespace isthmus::topology::internal
