#include "topology/route.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"

namespace isthmus::topology {

PathKind Route::Kind() const {
  const auto has = [this](LinkKind kind) {
    return std::any_of(links.begin(), links.end(),
                       [kind](const Link& link) { return link.kind == kind; });
  };
  if (links.empty()) return PathKind::kSameDevice;
  if (has(LinkKind::kCore)) return PathKind::kCore;
  if (has(LinkKind::kUplink)) return PathKind::kSpine;
  const bool has_nvlink = has(LinkKind::kNvlink);
  if (has(LinkKind::kNic)) return has_nvlink ? PathKind::kCrossRail : PathKind::kRail;
  return has_nvlink ? PathKind::kNvlink : PathKind::kPcie;
}

std::optional<base::BytesPerSecond> Route::Bandwidth() const {
  std::optional<base::BytesPerSecond> least;
  for (const Link& link : links) {
    if (!least || link.bandwidth < *least) least = link.bandwidth;
  }
  return least;
}

base::Seconds Route::Latency() const {
  base::Seconds sum{0};
  for (const Link& link : links) sum += link.latency;
  return sum;
}

bool Route::CrossesDeadLink() const {
  return std::any_of(links.begin(), links.end(), [](const Link& link) { return link.is_dead(); });
}

std::int64_t RoutingCost(const Link& link) {
  // Latency in whole picoseconds, and below it the count of links: fewer than 128 in any path.
  constexpr std::int64_t kPicosecond = 256;
  const auto picoseconds = static_cast<std::int64_t>(std::llround(link.latency.value() * 1e12));
  return picoseconds * kPicosecond + (link.kind == LinkKind::kNvlink ? 1 : 2);
}

std::string_view NameOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kGpu:
      return "gpu";
    case DeviceKind::kNvSwitch:
      return "nvswitch";
    case DeviceKind::kPcieSwitch:
      return "pcie-switch";
    case DeviceKind::kNic:
      return "nic";
    case DeviceKind::kHost:
      return "host";
    case DeviceKind::kLeaf:
      return "leaf";
    case DeviceKind::kSpine:
      return "spine";
    case DeviceKind::kCore:
      return "core";
    case DeviceKind::kSwitch:
      return "switch";
  }
  ISTHMUS_CHECK(false, "no such device kind {}", static_cast<int>(kind));
}

std::string_view NameOf(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
      return "nvlink";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kNic:
      return "nic";
    case LinkKind::kUplink:
      return "uplink";
    case LinkKind::kCore:
      return "core";
  }
  ISTHMUS_CHECK(false, "no such link kind {}", static_cast<int>(kind));
}

std::string_view NameOf(PathKind kind) {
  switch (kind) {
    case PathKind::kSameDevice:
      return "same device";
    case PathKind::kPcie:
      return "pcie";
    case PathKind::kNvlink:
      return "nvlink";
    case PathKind::kRail:
      return "rail";
    case PathKind::kCrossRail:
      return "cross-rail";
    case PathKind::kSpine:
      return "spine";
    case PathKind::kCore:
      return "core";
  }
  ISTHMUS_CHECK(false, "no such path kind {}", static_cast<int>(kind));
}

std::string LabelOf(const Device& device) {
  const std::string_view kind = NameOf(device.kind);
  switch (device.kind) {
    case DeviceKind::kCore:
      return device.is_layer ? std::string(kind) : fmt::format("{} {}", kind, device.index);
    case DeviceKind::kSwitch:
      return fmt::format("{} {}", kind, device.index);
    case DeviceKind::kSpine:
      if (!device.pod) return std::string(kind);
      return device.is_layer ? fmt::format("{} {}", kind, *device.pod)
                             : fmt::format("{} {}.{}", kind, *device.pod, device.index);
    case DeviceKind::kLeaf:
      return fmt::format("{} {}.{}", kind, device.leaf_group.value(), device.index);
    case DeviceKind::kNvSwitch:
      return fmt::format("{} {}", kind, device.domain.value());
    case DeviceKind::kHost:
      return fmt::format("{} {}", kind, device.node.value().value());
    default:
      return fmt::format("{} {}.{}", kind, device.node.value().value(), device.index);
  }
}

}  // namespace isthmus::topology
