#include "sim/network/traffic_map.h"

#include <algorithm>
#include <array>
#include <map>

namespace isthmus::sim {

namespace {

/// Two devices as a key.
std::uint64_t Pair(base::DeviceId from, base::DeviceId to) {
  return static_cast<std::uint64_t>(from.index()) << 32U | static_cast<std::uint64_t>(to.index());
}

}  // namespace

std::uint32_t TrafficMap::PathOver(std::span<const topology::Link> links) {
  TrafficPath& path = traffic_.paths.emplace_back();
  path.links.reserve(links.size());
  path.bytes_per_second = links.front().bandwidth.value();
  for (const topology::Link& link : links) {
    std::uint32_t& number = number_of_link_[link.id.index()];
    if (number == plan::kNone32) {
      number = static_cast<std::uint32_t>(traffic_.links.size());
      traffic_.links.push_back({.link = link});
    }
    path.links.push_back(number);
    path.bytes_per_second = std::min(path.bytes_per_second, link.bandwidth.value());
  }
  return static_cast<std::uint32_t>(traffic_.paths.size() - 1);
}

std::uint32_t TrafficMap::PathBetween(base::DeviceId from, base::DeviceId to) {
  const auto [at, is_new] = path_between_.try_emplace(Pair(from, to), 0U);
  if (is_new) at->second = PathOver(cluster_.RouteBetween(from, to).links);
  return at->second;
}

std::uint32_t TrafficMap::AddShape(Shape shape) {
  // Most shapes are one flow: nothing to add up.
  std::map<std::uint32_t, double> load;  // by link
  for (TrafficPart& part : shape.parts) {
    const TrafficPath& path = traffic_.paths[part.path];
    part.seconds_per_byte = part.share / path.bytes_per_second;
    shape.seconds_per_byte = std::max(shape.seconds_per_byte, part.seconds_per_byte);
    if (shape.parts.size() == 1) break;
    for (const std::uint32_t link : path.links) load[link] += part.share;
  }
  for (const auto& [number, share] : load) {
    const base::BytesPerSecond rate = traffic_.links[number].link.bandwidth;
    shape.seconds_per_byte = std::max(shape.seconds_per_byte, share / rate.value());
  }
  traffic_.shapes.push_back(std::move(shape));
  return static_cast<std::uint32_t>(traffic_.shapes.size() - 1);
}

void TrafficMap::AddEdge(Shape& shape, base::DeviceId from, base::DeviceId to, double share) {
  if (from == to || share <= 0) return;
  shape.parts.push_back({.path = PathBetween(from, to), .share = share});
}

std::uint32_t TrafficMap::Message(base::DeviceId from, base::DeviceId to) {
  const auto [at, is_new] = messages_.try_emplace(Pair(from, to), 0U);
  if (!is_new) return at->second;
  Shape shape;
  AddEdge(shape, from, to, 1);
  return at->second = AddShape(std::move(shape));
}

std::uint32_t TrafficMap::Copy(base::DeviceId gpu, plan::CopyDirection direction) {
  const base::DeviceId host = cluster_.HostOf(gpu);
  const bool to_host = direction == plan::CopyDirection::kToHost;
  const auto [at, is_new] = messages_.try_emplace(to_host ? Pair(gpu, host) : Pair(host, gpu), 0U);
  if (!is_new) return at->second;
  const topology::Route route = to_host ? cluster_.RouteToHost(gpu) : cluster_.RouteFromHost(gpu);
  Shape shape;
  shape.parts.push_back({.path = PathOver(route.links), .share = 1});
  return at->second = AddShape(std::move(shape));
}

namespace {

/// What lets traffic onto a link or takes it off: the slowest link on one side of it, by path.
struct Guards {
  std::vector<std::uint32_t> links;  // ascending and each once when all are there
  bool is_whole = true;              // every path has one

  void Add(const Traffic& traffic, std::span<const std::uint32_t> side) {
    if (side.empty()) {
      is_whole = false;
      return;
    }
    const std::uint32_t slowest =
        *std::min_element(side.begin(), side.end(), [&](std::uint32_t a, std::uint32_t b) {
          return traffic.links[a].link.bandwidth < traffic.links[b].link.bandwidth;
        });
    if (links.empty() || links.back() != slowest) links.push_back(slowest);
  }
  /// Whether no more comes through them than `bandwidth`, all being links that count.
  bool Hold(const Traffic& traffic, base::BytesPerSecond bandwidth) const {
    double sum = 0;
    for (const std::uint32_t guard : links) {
      if (!traffic.links[guard].may_be_short) return false;
      sum += traffic.links[guard].link.bandwidth.value();
    }
    return is_whole && sum <= bandwidth.value();
  }
};

}  // namespace

Traffic TrafficMap::Settled() && {
  const std::size_t num_links = traffic_.links.size();
  std::vector<std::array<Guards, 2>> guards(num_links);  // before and behind
  for (const TrafficPath& path : traffic_.paths) {
    const std::span<const std::uint32_t> all(path.links);
    for (std::size_t at = 0; at < all.size(); ++at) {
      guards[all[at]][0].Add(traffic_, all.first(at));
      guards[all[at]][1].Add(traffic_, all.subspan(at + 1));
    }
  }
  for (std::array<Guards, 2>& sides : guards) {
    for (Guards& side : sides) {
      std::sort(side.links.begin(), side.links.end());
      side.links.erase(std::unique(side.links.begin(), side.links.end()), side.links.end());
    }
  }
  std::vector<bool> is_guard(num_links, false);
  for (std::uint32_t link = 0; link < num_links; ++link) {
    TrafficLink& here = traffic_.links[link];
    for (const Guards& side : guards[link]) {
      if (is_guard[link] || !side.Hold(traffic_, here.link.bandwidth)) continue;
      here.may_be_short = false;
      for (const std::uint32_t guard : side.links) is_guard[guard] = true;
      break;
    }
  }
  for (TrafficPath& path : traffic_.paths) {
    for (const std::uint32_t link : path.links)
      if (traffic_.links[link].may_be_short) path.contended.push_back(link);
  }
  return std::move(traffic_);
}

}  // namespace isthmus::sim
